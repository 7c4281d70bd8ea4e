-- How long the present request to the model has failed, and why.
ALTER TABLE turns ADD COLUMN model_waited_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN model_failure TEXT;
