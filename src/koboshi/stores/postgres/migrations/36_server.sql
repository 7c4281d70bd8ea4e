-- What is known of the database and of its server.

-- name: server
-- The same columns as in own_schema.sql.
ALTER TABLE koboshi_schema
    ADD COLUMN database_id text NOT NULL DEFAULT gen_random_uuid()::text,
    ADD COLUMN server text NOT NULL DEFAULT '',
    ADD COLUMN loses_none boolean NOT NULL DEFAULT false,
    ADD COLUMN jumps_ms bigint NOT NULL DEFAULT 0;
