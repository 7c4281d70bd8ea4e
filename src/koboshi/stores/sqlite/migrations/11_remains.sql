-- A lost process may live on without its runner: that a person wants it ended is stored until it is.
ALTER TABLE processes ADD COLUMN remains_asked_ms INTEGER;
CREATE INDEX processes_with_remains ON processes (process_id) WHERE remains_asked_ms IS NOT NULL;
