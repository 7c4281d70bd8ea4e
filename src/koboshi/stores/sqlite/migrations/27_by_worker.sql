-- Who wrote a line of the journal, where several nodes do: each counts its own. PostgreSQL fills it by itself.
ALTER TABLE journal ADD COLUMN by_worker INTEGER;
