-- What stands beside the tables of the kernel: functions that its queries call and PostgreSQL does not have,
-- and what only this store asks the server.

-- name: koboshi_schema
-- One row: the version of the tables, the oldest program that may work on them, a hash of the statements
-- that made them; and what is known of the database and of its server.
CREATE TABLE koboshi_schema (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version     bigint NOT NULL,
    oldest_code bigint NOT NULL,
    shape       text NOT NULL,
    database_id text NOT NULL DEFAULT gen_random_uuid()::text, -- tells it from any other database
    server      text NOT NULL DEFAULT '',      -- which one the last start found; '': not known
    loses_none  boolean NOT NULL DEFAULT false, -- whether that one waits for a standby with each commit
    jumps_ms    bigint NOT NULL DEFAULT 0      -- the jumps of its clock that were made good, in all
);

-- name: worker_marks
-- What the writer of a worker has committed last, and when: not known to the kernel.
ALTER TABLE workers ADD COLUMN batch bigint NOT NULL DEFAULT 0,
                    ADD COLUMN seen_ms bigint NOT NULL DEFAULT 0;

-- name: by_worker_default
-- The worker of the batch, which `beat` tells; 0 without one.
ALTER TABLE journal ALTER COLUMN by_worker
    SET DEFAULT coalesce(nullif(current_setting('koboshi.worker', true), ''), '0')::bigint;

-- name: instr
-- The place of a text in another, from 1 on; 0 if it is not there.
CREATE FUNCTION instr(text, text) RETURNS integer LANGUAGE sql IMMUTABLE
AS $$ SELECT strpos($1, $2) $$;

-- name: json_of
-- JSON whose values can be looked at: the server knows no character zero, which a text may hold.
CREATE FUNCTION json_of(text) RETURNS json LANGUAGE sql IMMUTABLE
AS $$ SELECT replace($1, '\u0000', '\ufffd')::json $$;

-- name: json_each
-- The numbers of a list in JSON.
CREATE FUNCTION json_each(text) RETURNS TABLE (value bigint) LANGUAGE sql IMMUTABLE
AS $$ SELECT listed::bigint FROM json_array_elements_text($1::json) AS listed $$;

-- name: json_texts
-- The texts of a list in JSON.
CREATE FUNCTION json_texts(text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE
AS $$ SELECT listed COLLATE "C" FROM json_array_elements_text($1::json) AS listed $$;

-- name: number_in
-- The number that a text begins with; 0 for any other.
CREATE FUNCTION number_in(text) RETURNS bigint LANGUAGE sql IMMUTABLE
AS $$ SELECT coalesce(substring($1 FROM '^[0-9]{1,18}')::bigint, 0) $$;

-- name: now_ms
-- The clock of the server, which is the clock of all nodes.
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- name: beat
-- The first statement of each batch of a worker: a sign of life, its fence, and the mark by which a commit
-- of unknown outcome is known again. An error, and not an empty result: the commit that follows in the
-- same round must not pass. A worker without the batch before this one, or without its row, wrote to a later
-- state of this database: it went back.
CREATE FUNCTION beat(worker bigint, number bigint, told_ms bigint) RETURNS bigint LANGUAGE plpgsql
AS $$
DECLARE
    at_ms bigint := coalesce(told_ms, now_ms());
    known bigint;
BEGIN
    UPDATE workers SET batch = number, seen_ms = at_ms
    WHERE worker_id = worker AND ended_ms IS NULL AND batch = number - 1;
    IF NOT FOUND THEN
        SELECT batch INTO known FROM workers WHERE worker_id = worker;
        IF known = number - 1 THEN
            RAISE EXCEPTION 'worker % has ended', worker USING ERRCODE = 'KB001';
        END IF;
        RAISE EXCEPTION 'it knows batch % of worker %, and batch % was committed',
            coalesce(known::text, 'no'), worker, number - 1 USING ERRCODE = 'KB002';
    END IF;
    PERFORM set_config('koboshi.worker', worker::text, true);
    RETURN at_ms;
END $$;

-- name: server_name
-- Which server this is: its cluster, and the timeline that a promotion or a restore begins anew. Empty where
-- it does not tell.
CREATE FUNCTION server_name() RETURNS text LANGUAGE plpgsql
AS $$
BEGIN
    RETURN (SELECT system_identifier::text FROM pg_control_system())
        || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
EXCEPTION WHEN OTHERS THEN
    RETURN '';
END $$;

-- name: waits_for_standby
-- Whether a commit is acknowledged only when a standby has it, so that its promotion loses nothing.
CREATE FUNCTION waits_for_standby() RETURNS boolean LANGUAGE sql STABLE
AS $$ SELECT current_setting('synchronous_standby_names') <> ''
          AND current_setting('synchronous_commit') IN ('on', 'remote_write', 'remote_apply') $$;

-- name: note_promise
-- Keep what the server promises by now, for the start that finds another one.
CREATE FUNCTION note_promise() RETURNS boolean LANGUAGE plpgsql
AS $$
DECLARE now_is boolean := waits_for_standby();
BEGIN
    UPDATE koboshi_schema SET loses_none = now_is WHERE loses_none <> now_is;
    RETURN now_is;
END $$;

-- name: search_words
-- The words of messages and answers, by the number of their step.
CREATE TABLE search_words (
    seq   bigint PRIMARY KEY,
    words tsvector NOT NULL
);

-- name: search_words_index
-- Finding words costs nothing per step without them.
CREATE INDEX search_words_index ON search_words USING gin (words);

-- name: search_bounds
-- A number of a step, and the first transaction that has begun after that number was given: when all before it
-- have ended, no step up to the number is missing any more.
CREATE TABLE search_bounds (
    only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    seq       bigint NOT NULL,
    before_id bigint NOT NULL
);

-- name: search_bound
-- Up to which step all are there that ever will be.
CREATE FUNCTION search_bound() RETURNS bigint LANGUAGE plpgsql
AS $$
DECLARE known search_bounds%ROWTYPE;
BEGIN
    INSERT INTO search_bounds (seq, before_id) VALUES (0, 0) ON CONFLICT DO NOTHING;
    SELECT * INTO known FROM search_bounds FOR UPDATE;
    IF pg_snapshot_xmin(pg_current_snapshot())::text::bigint < known.before_id THEN
        RETURN 0;
    END IF;
    UPDATE search_bounds SET seq = (SELECT last_value FROM steps_seq_seq),
        before_id = pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
    RETURN known.seq;
END $$;
