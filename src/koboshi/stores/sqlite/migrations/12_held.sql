-- Held is a state of a delivery. It was a time that never comes.
CREATE TABLE outbox_held (
    delivery_id   INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions,
    turn_id       INTEGER REFERENCES turns,
    cause         TEXT NOT NULL,
    part          INTEGER NOT NULL,
    parts         INTEGER NOT NULL,
    text          TEXT NOT NULL,
    choices       TEXT NOT NULL DEFAULT '[]',
    question      INTEGER,
    anchor        TEXT NOT NULL,
    file          TEXT,
    state         TEXT NOT NULL CHECK (state IN ('draft', 'owed', 'sending', 'held', 'delivered',
                                                 'rejected', 'abandoned')),
    attempts      INTEGER NOT NULL DEFAULT 0,
    ambiguous     INTEGER NOT NULL DEFAULT 0 CHECK (ambiguous IN (0, 1)),
    labelled      INTEGER NOT NULL DEFAULT 0 CHECK (labelled IN (0, 1)),
    not_before_ms INTEGER NOT NULL DEFAULT 0,
    worker_id     INTEGER REFERENCES workers,
    platform_id   TEXT,
    reason        TEXT,
    created_ms    INTEGER NOT NULL,
    changed_ms    INTEGER NOT NULL,
    settled_ms    INTEGER,
    wait_ms       INTEGER NOT NULL DEFAULT 0,
    aged_from_ms  INTEGER NOT NULL DEFAULT 0,
    tried_by      INTEGER REFERENCES workers,
    unsure        INTEGER NOT NULL DEFAULT 0,
    strikes       INTEGER NOT NULL DEFAULT 0,
    tried_seq     INTEGER NOT NULL DEFAULT 0,
    sent_seq      INTEGER NOT NULL DEFAULT 0,
    settled_seq   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, cause, part),
    CHECK ((state = 'sending') = (worker_id IS NOT NULL)),
    CHECK ((state IN ('delivered', 'rejected', 'abandoned')) = (settled_ms IS NOT NULL)),
    CHECK (state NOT IN ('rejected', 'abandoned') OR reason IS NOT NULL),
    CHECK (state <> 'held' OR not_before_ms = 0),
    CHECK (part BETWEEN 1 AND parts)
) STRICT;

-- The triggers of the old table go with it, so the copy writes no lines of the journal.
INSERT INTO outbox_held (delivery_id, session_id, turn_id, cause, part, parts, text, choices,
                         question, anchor, file, state, attempts, ambiguous, labelled,
                         not_before_ms, worker_id, platform_id, reason, created_ms, changed_ms,
                         settled_ms, wait_ms, aged_from_ms, tried_by, unsure, strikes, tried_seq,
                         sent_seq, settled_seq)
SELECT delivery_id, session_id, turn_id, cause, part, parts, text, choices, question, anchor, file,
       CASE WHEN state = 'owed' AND not_before_ms >= 4611686018427387904 THEN 'held' ELSE state END,
       attempts, ambiguous, labelled,
       CASE WHEN state = 'owed' AND not_before_ms >= 4611686018427387904 THEN 0 ELSE not_before_ms END,
       worker_id, platform_id, reason, created_ms, changed_ms, settled_ms,
       CASE WHEN state = 'owed' AND not_before_ms >= 4611686018427387904 THEN 0 ELSE wait_ms END,
       aged_from_ms, tried_by, unsure, strikes, tried_seq, sent_seq, settled_seq
FROM outbox ORDER BY delivery_id;
DROP TABLE outbox;
ALTER TABLE outbox_held RENAME TO outbox;

CREATE INDEX outbox_unsettled ON outbox (session_id, delivery_id) WHERE settled_ms IS NULL;
CREATE INDEX outbox_by_turn ON outbox (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX outbox_files ON outbox (delivery_id) WHERE file IS NOT NULL;
CREATE INDEX outbox_postponed ON outbox (not_before_ms)
    WHERE settled_ms IS NULL AND not_before_ms > 0;

CREATE TRIGGER settled_deliveries_never_change BEFORE UPDATE ON outbox
    WHEN OLD.settled_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a settled delivery never changes'); END;

CREATE TRIGGER journal_delivery AFTER UPDATE OF state ON outbox
    WHEN NEW.state <> 'sending' AND NOT (OLD.state = 'held' AND NEW.state = 'owed')
BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, reason, session_id, turn_id,
                         worker_id)
    VALUES (NEW.changed_ms, 'delivery', NEW.delivery_id,
            CASE WHEN NEW.state IN ('owed', 'held') THEN 'postponed' ELSE NEW.state END, OLD.state,
            NEW.state, NEW.reason, NEW.session_id, NEW.turn_id, OLD.worker_id);
END;
