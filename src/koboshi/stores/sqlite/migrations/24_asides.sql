-- Where a schedule works beside the conversation: a session of its own on the same route. What is unique
-- is a constraint, so the table is made anew; its trigger goes with it, so the copy writes no lines.

CREATE TABLE sessions_aside (
    session_id   INTEGER PRIMARY KEY,
    channel      TEXT NOT NULL,
    chat         TEXT NOT NULL,
    thread       TEXT NOT NULL,
    generation   INTEGER NOT NULL DEFAULT 1,
    context_from INTEGER NOT NULL DEFAULT 0,
    settings     TEXT NOT NULL DEFAULT '{}',
    moved_ms     INTEGER NOT NULL DEFAULT 0,  -- the platform's ids from before are those of another chat
    created_ms   INTEGER NOT NULL,
    changed_ms   INTEGER NOT NULL,
    forgotten_seq INTEGER NOT NULL DEFAULT 0, -- the newest journal line of it that was deleted
    lock_key     INTEGER NOT NULL DEFAULT 0,  -- a transaction that writes its rows holds it; stays after a move
    node         TEXT,                        -- where its newest turn was claimed; NULL: never
    person       TEXT NOT NULL DEFAULT '',    -- whose private chat it is; '': a group, or not known
    aside        TEXT NOT NULL DEFAULT '',    -- the schedule that works here beside the conversation; '': it is that
    -- Two conversations on one route, or two places of one schedule.
    UNIQUE (channel, chat, thread, aside)
) STRICT;

INSERT INTO sessions_aside (session_id, channel, chat, thread, generation, context_from, settings, moved_ms,
    created_ms, changed_ms, forgotten_seq, lock_key, node, person)
SELECT session_id, channel, chat, thread, generation, context_from, settings, moved_ms,
    created_ms, changed_ms, forgotten_seq, lock_key, node, person
FROM sessions ORDER BY session_id;
DROP TABLE sessions;
ALTER TABLE sessions_aside RENAME TO sessions;

-- The private chats of owners are asked about approvals.
CREATE INDEX sessions_private ON sessions (channel, person, thread) WHERE person <> '';

CREATE TRIGGER journal_cut AFTER UPDATE OF generation ON sessions BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, session_id)
    VALUES (NEW.changed_ms, 'session', NEW.session_id, 'cut', OLD.generation,
            NEW.generation, NEW.session_id);
END;

-- A reminder whose words are told as they are, and where a schedule works, if not in the conversation.
ALTER TABLE schedules ADD COLUMN plain INTEGER NOT NULL DEFAULT 0 CHECK (plain IN (0, 1));
ALTER TABLE schedules ADD COLUMN own_session INTEGER REFERENCES sessions;
-- What was told without the model since it last heard of the chat.
CREATE INDEX schedules_plain ON schedules (session_id, changed_ms) WHERE plain = 1;

-- The platform may tell the zone of a person, who can tell another one.
ALTER TABLE zones ADD COLUMN told INTEGER NOT NULL DEFAULT 1 CHECK (told IN (0, 1));
