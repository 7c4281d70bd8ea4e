-- Statements of PostgreSQL alone.

-- name: step_next
-- The number of the next step: greater than that of every step that a chat had when its key was taken.
SELECT nextval('steps_seq_seq');

-- name: keys_of_sessions
-- The keys of sessions. They never change.
SELECT session_id, lock_key FROM sessions WHERE session_id IN (SELECT value FROM json_each(:ids));

-- name: keys_take
-- Hold keys until the commit, in the order of the list.
SELECT pg_advisory_xact_lock(value) FROM json_each(:ids);

-- name: key_try
-- Hold a key until the commit, if no other transaction does.
SELECT pg_try_advisory_xact_lock(:key);

-- name: batch_begin
-- A sign of life of this worker, its fence, and the mark of its batch. Gives the clock of the server.
SELECT beat(:worker_id, :number, :now);

-- name: workers_alive
-- The other workers that have no end, with what changes when they give a sign of life.
SELECT worker_id, node, heartbeat_ms, batch FROM workers
WHERE ended_ms IS NULL AND worker_id <> :worker_id ORDER BY worker_id;

-- name: worker_bury
-- A worker is dead: it has given no sign since it was seen so. One that is inside a batch is left for later:
-- the server ends that batch, or it is committed and the worker lives.
UPDATE workers SET ended_ms = greatest(heartbeat_ms, seen_ms), ended_how = 'killed',
                   heartbeat_ms = greatest(heartbeat_ms, seen_ms)
WHERE worker_id IN (
    SELECT worker_id FROM workers
    WHERE worker_id = :worker_id AND ended_ms IS NULL AND heartbeat_ms = :heartbeat_ms AND batch = :batch
    FOR UPDATE SKIP LOCKED);

-- name: batch_mark
-- The mark of the last batch that was committed. Waits for a transaction that has not ended yet.
SELECT batch, ended_ms FROM workers WHERE worker_id = :worker_id FOR UPDATE;

-- name: server_clock
-- The clock of the server.
SELECT now_ms();

-- name: server_safety
-- Settings without which a commit is not durable.
SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('server_encoding');

-- name: other_homes
-- Whether a gateway of another home has worked on the database.
SELECT EXISTS (SELECT 1 FROM workers WHERE home <> :home);

-- name: schema_lock
-- All nodes that look at the tables, or change them, take turns.
SELECT pg_advisory_xact_lock(:key);

-- name: schema_exists
-- Whether the database has tables of ours.
SELECT to_regclass('koboshi_schema') IS NOT NULL;

-- name: schema_of_others
-- How many tables the database has.
SELECT count(*) FROM pg_tables WHERE schemaname = current_schema();

-- name: schema_note
-- The tables are made.
INSERT INTO koboshi_schema (version, oldest_code, shape) VALUES (:version, :oldest_code, :shape);

-- name: schema_read
-- Which version the tables have.
SELECT version, oldest_code, shape FROM koboshi_schema;

-- name: search_bound
-- Up to which step all are there that ever will be.
SELECT search_bound();

-- name: search_add
-- Index the words of a step.
INSERT INTO search_words (seq, words) VALUES (:seq, to_tsvector('simple', :words)) ON CONFLICT DO NOTHING;

-- name: search_clear
-- Forget all words. They are indexed anew.
DELETE FROM search_words;

-- name: search_find
-- The newest steps with these words.
SELECT seq FROM search_words WHERE words @@ to_tsquery('simple', :words) ORDER BY seq DESC LIMIT :limit;
