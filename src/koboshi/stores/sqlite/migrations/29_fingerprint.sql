-- A boot tells how it is configured, so that differences between nodes can be shown.
ALTER TABLE workers ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';
