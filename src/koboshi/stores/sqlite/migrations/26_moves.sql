-- Whether the rows of this database are those that count, once they were moved from one store to another.
CREATE TABLE moves (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    move_id TEXT NOT NULL,
    state   TEXT NOT NULL CHECK (state IN ('arriving', 'live', 'moved')),
    place   TEXT NOT NULL,                     -- where the rows come from, or went to
    at_ms   INTEGER NOT NULL
) STRICT;

-- A gateway that works on rows that do not count.
CREATE TRIGGER no_worker_where_rows_do_not_count BEFORE INSERT ON workers
    WHEN EXISTS (SELECT 1 FROM moves WHERE state <> 'live')
BEGIN SELECT RAISE(ABORT, 'the rows of this database are elsewhere'); END;
