-- Where a schedule works beside the conversation: a session of its own on the same route.

-- name: aside
-- The column that SQLite makes the table anew for.
ALTER TABLE sessions ADD COLUMN aside text COLLATE "C" NOT NULL DEFAULT '';

-- name: not_one_per_route
-- Two conversations on one route are forbidden by the next one.
ALTER TABLE sessions DROP CONSTRAINT sessions_channel_chat_thread_key;

-- name: one_per_place
-- Two conversations on one route, or two places of one schedule.
ALTER TABLE sessions ADD UNIQUE (channel, chat, thread, aside);

-- name: plain
-- A reminder whose words are told as they are.
ALTER TABLE schedules ADD COLUMN plain bigint NOT NULL DEFAULT 0;

-- name: own_session
-- Where a schedule works, if not in the conversation.
ALTER TABLE schedules ADD COLUMN own_session bigint REFERENCES sessions;

-- name: schedules_plain
-- What was told without the model since it last heard of the chat.
CREATE INDEX schedules_plain ON schedules (session_id, changed_ms, schedule_id) WHERE plain = 1;

-- name: told
-- The platform may tell the zone of a person, who can tell another one.
ALTER TABLE zones ADD COLUMN told bigint NOT NULL DEFAULT 1;
