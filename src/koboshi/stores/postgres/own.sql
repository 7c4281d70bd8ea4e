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

-- name: batch_mark
-- The mark of the last batch that was committed. Waits for a transaction that has not ended yet.
SELECT batch, ended_ms FROM workers WHERE worker_id = :worker_id FOR UPDATE;

-- name: server_clock
-- The clock of the server.
SELECT now_ms();

-- name: server_safety
-- Settings without which a commit is not durable.
SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('server_encoding');

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
