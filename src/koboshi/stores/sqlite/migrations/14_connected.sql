-- When a boot reached its platform for the first time: what was sent before that is a backlog.
ALTER TABLE accounts ADD COLUMN connected_by INTEGER REFERENCES workers(worker_id);
ALTER TABLE accounts ADD COLUMN connected_ms INTEGER;
