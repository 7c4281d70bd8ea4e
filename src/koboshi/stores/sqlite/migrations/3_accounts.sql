-- What was read, and the keys of what came, belong to the account that it came to. Rows from before
-- have the account '' until the first one connects.

CREATE TABLE accounts (
    channel  TEXT PRIMARY KEY,
    account  TEXT NOT NULL CHECK (account <> ''),
    bound_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE cursors_bound (
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    token   TEXT NOT NULL,
    PRIMARY KEY (channel, account)
) STRICT, WITHOUT ROWID;

INSERT INTO cursors_bound (channel, account, token) SELECT channel, '', token FROM cursors;
DROP TABLE cursors;
ALTER TABLE cursors_bound RENAME TO cursors;

CREATE TABLE inbox_bound (
    entry_id    INTEGER PRIMARY KEY,
    session_id  INTEGER REFERENCES sessions,
    generation  INTEGER,
    kind        TEXT NOT NULL CHECK (kind IN ('message', 'command', 'report', 'ignored')),
    source      TEXT NOT NULL,
    external_id TEXT NOT NULL,
    sender      TEXT NOT NULL,
    body        TEXT NOT NULL,
    during_turn INTEGER,
    accepted_by INTEGER REFERENCES workers,
    received_ms INTEGER NOT NULL,
    changed_ms  INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('waiting', 'attached', 'handled', 'dropped',
                                               'ignored')),
    turn_id     INTEGER REFERENCES turns,
    reason      TEXT,
    account     TEXT NOT NULL DEFAULT '',      -- to whom of us it was said, as in `accounts`
    -- The same message of a platform, or the same report of a process, taken twice.
    UNIQUE (source, account, external_id),
    -- Attached to nothing, or in a turn without being attached.
    CHECK ((state = 'attached') = (turn_id IS NOT NULL)),
    -- Lost without a reason.
    CHECK ((state IN ('dropped', 'ignored')) = (reason IS NOT NULL)),
    -- Something that may wake a session and belongs to none.
    CHECK (kind = 'ignored' OR (session_id IS NOT NULL AND generation IS NOT NULL)),
    CHECK ((kind = 'ignored') = (state = 'ignored'))
) STRICT;

-- The triggers of the old table go with it, so the copy writes no lines of the journal.
INSERT INTO inbox_bound (entry_id, session_id, generation, kind, source, external_id, sender, body,
                         during_turn, accepted_by, received_ms, changed_ms, state, turn_id, reason)
SELECT entry_id, session_id, generation, kind, source, external_id, sender, body,
       during_turn, accepted_by, received_ms, changed_ms, state, turn_id, reason
FROM inbox ORDER BY entry_id;
DROP TABLE inbox;
ALTER TABLE inbox_bound RENAME TO inbox;

CREATE INDEX inbox_waiting ON inbox (session_id, entry_id) WHERE state = 'waiting';
CREATE INDEX inbox_by_turn ON inbox (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX inbox_of_strangers ON inbox (entry_id) WHERE reason = 'not-allowed';
CREATE INDEX inbox_reports ON inbox (received_ms) WHERE kind = 'report';

CREATE TRIGGER journal_message AFTER INSERT ON inbox WHEN NEW.reason IS NOT 'not-allowed' BEGIN
    INSERT INTO journal (at_ms, subject, number, event, after, reason, session_id, worker_id)
    VALUES (NEW.received_ms, 'message', NEW.entry_id, 'accepted', NEW.kind, NEW.reason,
            NEW.session_id, NEW.accepted_by);
END;

CREATE TRIGGER journal_message_dropped AFTER UPDATE OF state ON inbox WHEN NEW.state = 'dropped'
BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, reason, session_id)
    VALUES (NEW.changed_ms, 'message', NEW.entry_id, 'dropped', OLD.state, NEW.state,
            NEW.reason, NEW.session_id);
END;
