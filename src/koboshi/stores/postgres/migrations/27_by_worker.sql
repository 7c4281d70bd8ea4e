-- Who wrote a line of the journal.

-- name: by_worker
-- The same column as in SQLite.
ALTER TABLE journal ADD COLUMN by_worker bigint;

-- name: by_worker_default
-- As in own_schema.sql.
ALTER TABLE journal ALTER COLUMN by_worker
    SET DEFAULT coalesce(nullif(current_setting('koboshi.worker', true), ''), '0')::bigint;
