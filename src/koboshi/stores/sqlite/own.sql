-- Statements of SQLite alone: the database lies in one home, and has one owner at a time.

-- name: tables_count
-- How many tables the file has.
SELECT count(*) FROM sqlite_schema;

-- name: other_homes
-- Whether the database knows of other homes than the one that it lies in.
SELECT EXISTS (SELECT 1 FROM workers WHERE home <> :home)
    OR EXISTS (SELECT 1 FROM processes WHERE home <> :home);

-- name: workers_rehome
-- Boots that are told to be of other homes are of this one.
UPDATE workers SET home = :home WHERE home <> :home;

-- name: processes_rehome
-- Likewise for processes.
UPDATE processes SET home = :home WHERE home <> :home;

-- name: workers_end_in_sight
-- A worker without an end is dead here: this process holds the home. To be rolled back.
UPDATE workers SET ended_ms = heartbeat_ms, ended_how = 'killed' WHERE ended_ms IS NULL;
