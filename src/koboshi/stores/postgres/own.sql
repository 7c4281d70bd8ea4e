-- Statements of PostgreSQL alone.

-- name: step_next
-- The number of the next step: greater than that of every step that a chat had when its key was taken.
SELECT nextval('steps_seq_seq');

-- name: steps_reserve
-- As many such numbers at once, drawn when the keys of the batch are held.
SELECT nextval('steps_seq_seq') FROM generate_series(1, :limit);

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
-- A sign of life of this worker, its fence, and the mark of its batch. Gives the clock of the server, and which
-- jumps of it were made good.
SELECT beat(:worker_id, :number, :now), (SELECT jumps_ms FROM koboshi_schema);

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

-- name: home_successor
-- Where a later boot of the same home is, though the home is locked by the one that asks.
SELECT later.node, later.host FROM workers AS mine JOIN workers AS later ON later.home = mine.home
WHERE mine.worker_id = :worker_id AND later.worker_id > mine.worker_id
ORDER BY later.worker_id DESC LIMIT 1;

-- name: server_writes
-- Whether the server takes no writes: it is a standby, or set so.
SELECT current_setting('transaction_read_only');

-- name: compression_set
-- Compress long texts in the quick way, where the server has it; the other takes a twentieth of its time.
SELECT set_config(name, 'lz4', false) FROM pg_settings
WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals);

-- name: hints_tell
-- Tell the other nodes. Outside a transaction: inside one, commits would wait for each other.
SELECT pg_notify('koboshi_hints', :payload);

-- name: jump_note
-- A jump of the clock is made good, once for all nodes.
UPDATE koboshi_schema SET jumps_ms = jumps_ms + :jump_ms WHERE jumps_ms = :seen_ms;

-- name: server_seen
-- Which server this is, and whether the promotion of its standby loses nothing.
SELECT server_name(), waits_for_standby();

-- name: server_known
-- Which database this is, and what the last start found.
SELECT database_id, server, loses_none FROM koboshi_schema FOR UPDATE;

-- name: server_note
-- Which server is known from now on.
UPDATE koboshi_schema SET server = :server, loses_none = waits_for_standby();

-- name: server_follows
-- A standby that had everything has taken the place of its server.
UPDATE koboshi_schema SET server = :server WHERE server = :before;

-- name: promise_note
-- Keep what the server promises by now.
SELECT note_promise();

-- name: server_clock
-- The clock of the server.
SELECT now_ms();

-- name: server_safety
-- Settings without which a commit is not durable.
SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('server_encoding');

-- name: schema_lock
-- All nodes that look at the tables, or change them, take turns.
SELECT pg_advisory_xact_lock(:key);

-- name: schema_hold
-- The same for as long as the connection lasts.
SELECT pg_advisory_lock(:key);

-- name: schema_exists
-- Whether the database has tables of ours.
SELECT to_regclass('koboshi_schema') IS NOT NULL;

-- name: schema_of_others
-- How many tables the database has.
SELECT count(*) FROM pg_tables WHERE schemaname = current_schema();

-- name: server_examination
-- What the server is set to, how many follow it, and how many connections are left. A role that may see nothing of
-- the activity of others counts its own.
SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),
       current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication),
       pg_is_in_recovery(), current_setting('server_encoding'),
       current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
           - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
       current_setting('idle_in_transaction_session_timeout'), pg_backend_pid(),
       (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- name: server_standing
-- What the server promises of a commit.
SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),
       (SELECT count(*) FROM pg_stat_replication);

-- name: nodes_alive
-- The gateways that have no end, for how long each gave no sign of life, and how it is configured: tables of
-- an earlier version do not say.
SELECT node, home, version, now_ms() - greatest(heartbeat_ms, seen_ms),
       coalesce(to_jsonb(workers) ->> 'fingerprint', '')
FROM workers WHERE ended_ms IS NULL ORDER BY worker_id;

-- name: moves_exist
-- Whether the database can say that its rows were moved.
SELECT to_regclass('moves') IS NOT NULL;

-- name: workers_count
-- How many workers have ever worked on the database.
SELECT count(*) FROM workers;

-- name: workers_lock
-- No worker begins a batch, or starts, until the transaction ends.
LOCK TABLE workers IN EXCLUSIVE MODE;

-- name: workers_recent
-- Nodes of other homes whose workers may still work.
SELECT node FROM workers
WHERE ended_ms IS NULL AND home <> :home AND greatest(heartbeat_ms, seen_ms) > now_ms() - :age_ms;

-- name: workers_bury_all
-- No worker that is left may write here again.
UPDATE workers SET ended_ms = greatest(heartbeat_ms, seen_ms), ended_how = 'killed'
WHERE ended_ms IS NULL;

-- name: schema_note
-- The tables are made.
INSERT INTO koboshi_schema (version, oldest_code, shape) VALUES (:version, :oldest_code, :shape);

-- name: schema_change
-- The tables are those of the newest version now. A program that may work on them is never locked out again.
UPDATE koboshi_schema SET version = :version, oldest_code = greatest(oldest_code, :oldest_code), shape = :shape;

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

-- name: recall_find
-- The newest steps with these words in some sessions.
SELECT s.seq FROM search_words AS w JOIN steps AS s ON s.seq = w.seq
WHERE w.words @@ to_tsquery('simple', :words) AND s.session_id IN (SELECT value FROM json_each(:sessions))
ORDER BY s.seq DESC LIMIT :limit;
