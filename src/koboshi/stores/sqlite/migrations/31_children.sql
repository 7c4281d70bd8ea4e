-- Sub-agents: sessions that work for a turn. What they are to do, and how they ended, are kinds of entries,
-- which is a constraint, so the table is made anew.

CREATE TABLE inbox_told (
    entry_id    INTEGER PRIMARY KEY,
    session_id  INTEGER REFERENCES sessions,
    generation  INTEGER,
    kind        TEXT NOT NULL CHECK (kind IN ('message', 'command', 'report', 'ignored', 'occasion',
                                              'goal', 'task', 'child')),
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
    account     TEXT NOT NULL DEFAULT '',      -- which account it was sent to, as in `accounts`
    erased_ms   INTEGER,
    -- The same message of a platform, or the same report of a process, stored twice.
    UNIQUE (source, account, external_id),
    -- Attached to no turn, or in a turn without being attached.
    CHECK ((state = 'attached') = (turn_id IS NOT NULL)),
    -- Dropped without a reason.
    CHECK ((state IN ('dropped', 'ignored')) = (reason IS NOT NULL)),
    -- An entry that may wake a session and belongs to none.
    CHECK (kind = 'ignored' OR (session_id IS NOT NULL AND generation IS NOT NULL)),
    CHECK ((kind = 'ignored') = (state = 'ignored'))
) STRICT;

-- The triggers of the old table go with it, so the copy writes no lines of the journal.
INSERT INTO inbox_told (entry_id, session_id, generation, kind, source, external_id, sender, body, during_turn,
    accepted_by, received_ms, changed_ms, state, turn_id, reason, account, erased_ms)
SELECT entry_id, session_id, generation, kind, source, external_id, sender, body, during_turn,
    accepted_by, received_ms, changed_ms, state, turn_id, reason, account, erased_ms
FROM inbox ORDER BY entry_id;
DROP TABLE inbox;
ALTER TABLE inbox_told RENAME TO inbox;

CREATE INDEX inbox_waiting ON inbox (session_id, entry_id) WHERE state = 'waiting';
CREATE INDEX inbox_by_turn ON inbox (turn_id) WHERE turn_id IS NOT NULL;
-- The oldest messages of strangers are deleted.
CREATE INDEX inbox_of_strangers ON inbox (entry_id) WHERE reason = 'not-allowed';
-- How many reports of processes came recently.
CREATE INDEX inbox_reports ON inbox (received_ms) WHERE kind = 'report';

-- An entry that is taken away takes its occasion along.
CREATE TRIGGER occasions_are_dropped AFTER UPDATE OF state ON inbox
    WHEN NEW.state = 'dropped' AND NEW.kind = 'occasion'
BEGIN
    UPDATE occasions SET verdict = 'dropped', rule = 'taken-away' WHERE entry_id = NEW.entry_id;
END;

-- Without strangers, who must not be able to make it grow.
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

-- Sub-agents. The work of a turn that another session does; its parent hears of its end once, by an entry
-- of the inbox whose key is the child.
CREATE TABLE children (
    child_id    INTEGER PRIMARY KEY,
    session_id  INTEGER NOT NULL REFERENCES sessions,  -- its parent's
    generation  INTEGER NOT NULL,              -- of its parent, when it was made
    turn_id     INTEGER NOT NULL REFERENCES turns,
    call_id     TEXT NOT NULL,
    person      TEXT NOT NULL,
    name        TEXT NOT NULL,
    task        TEXT NOT NULL,
    depth       INTEGER NOT NULL CHECK (depth >= 1),
    state       TEXT NOT NULL CHECK (state IN ('waiting', 'working', 'ended')),
    own_session INTEGER REFERENCES sessions,   -- where it works; NULL: it has not begun
    how         TEXT,                          -- it ended
    made_ms     INTEGER NOT NULL,
    begun_ms    INTEGER,
    ended_ms    INTEGER,
    -- One call makes two.
    UNIQUE (turn_id, call_id),
    -- Two work in one place.
    UNIQUE (own_session),
    -- At work without a place, or since no time.
    CHECK (state <> 'working' OR own_session IS NOT NULL),
    CHECK ((own_session IS NULL) = (begun_ms IS NULL)),
    -- An end without a time, or without a word how.
    CHECK ((state = 'ended') = (ended_ms IS NOT NULL)),
    CHECK ((ended_ms IS NULL) = (how IS NULL))
) STRICT;

-- Finding those that are open costs nothing per one that has ended.
CREATE INDEX children_open ON children (session_id, child_id) WHERE ended_ms IS NULL;
CREATE INDEX children_by_session ON children (session_id, child_id);

CREATE TRIGGER ended_children_stay_ended BEFORE UPDATE OF state ON children WHEN OLD.ended_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a child that has ended stays ended'); END;

CREATE TRIGGER journal_child_made AFTER INSERT ON children BEGIN
    INSERT INTO journal (at_ms, subject, number, event, after, session_id, turn_id)
    VALUES (NEW.made_ms, 'child', NEW.child_id, 'made', NEW.state, NEW.session_id, NEW.turn_id);
END;

CREATE TRIGGER journal_child_moved AFTER UPDATE OF state ON children WHEN NEW.state <> OLD.state BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, reason, session_id, turn_id)
    VALUES (coalesce(NEW.ended_ms, NEW.begun_ms), 'child', NEW.child_id,
            CASE WHEN NEW.state = 'ended' THEN 'ended' ELSE 'begun' END, OLD.state, NEW.state, NEW.how,
            NEW.session_id, NEW.turn_id);
END;
