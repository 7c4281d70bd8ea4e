-- Roles. Who was let in by a code is a member from now on. `role_ms` is NULL until the owners were told.
ALTER TABLE people ADD COLUMN role TEXT NOT NULL DEFAULT 'member' CHECK (role IN ('member', 'owner'));
ALTER TABLE people ADD COLUMN role_ms INTEGER;

-- Whose private chat a session is. On Telegram, such a chat has the number of its person; groups have
-- negative numbers.
ALTER TABLE sessions ADD COLUMN person TEXT NOT NULL DEFAULT '';
UPDATE sessions SET person = chat WHERE channel GLOB 'telegram:*' AND chat GLOB '[1-9]*';
CREATE INDEX sessions_private ON sessions (channel, person, thread) WHERE person <> '';

-- Erasure. The rows stay with their keys, and only what they say goes.
CREATE TABLE erasures (
    erasure_id INTEGER PRIMARY KEY,
    channel    TEXT NOT NULL,
    person     TEXT NOT NULL,
    asked_by   TEXT NOT NULL,                  -- the person, or the operator
    asked_ms   INTEGER NOT NULL,
    files      TEXT,                           -- what is to be deleted, as JSON; NULL: it is gone
    done_ms    INTEGER                         -- files are gone, and the log is truncated
) STRICT;
CREATE INDEX erasures_open ON erasures (erasure_id) WHERE done_ms IS NULL;

ALTER TABLE inbox ADD COLUMN erased_ms INTEGER;
ALTER TABLE steps ADD COLUMN erased_ms INTEGER;
ALTER TABLE outbox ADD COLUMN erased_ms INTEGER;

DROP TRIGGER steps_never_change;
CREATE TRIGGER steps_never_change BEFORE UPDATE ON steps
    WHEN NOT (OLD.erased_ms IS NULL AND NEW.erased_ms IS NOT NULL AND NEW.seq = OLD.seq
              AND NEW.session_id = OLD.session_id AND NEW.turn_id = OLD.turn_id
              AND NEW.epoch = OLD.epoch AND NEW.kind = OLD.kind AND NEW.cause = OLD.cause
              AND NEW.at_ms = OLD.at_ms)
BEGIN SELECT RAISE(ABORT, 'the transcript is only appended to'); END;

DROP TRIGGER settled_deliveries_never_change;
CREATE TRIGGER settled_deliveries_never_change BEFORE UPDATE ON outbox
    WHEN OLD.settled_ms IS NOT NULL
        AND NOT (OLD.erased_ms IS NULL AND NEW.erased_ms IS NOT NULL AND NEW.state = OLD.state
                 AND NEW.session_id = OLD.session_id AND NEW.cause = OLD.cause
                 AND NEW.part = OLD.part AND NEW.settled_ms = OLD.settled_ms)
BEGIN SELECT RAISE(ABORT, 'a settled delivery never changes'); END;

DROP TRIGGER journal_never_changes;
CREATE TRIGGER journal_never_changes BEFORE UPDATE ON journal
    WHEN NOT (OLD.subject = 'process' AND NEW.reason IS NULL AND NEW.seq = OLD.seq
              AND NEW.at_ms = OLD.at_ms AND NEW.subject = OLD.subject
              AND NEW.number = OLD.number AND NEW.event = OLD.event)
BEGIN SELECT RAISE(ABORT, 'the journal is only appended to'); END;
