-- Schedules, occasions and goals: what wakes a session by itself is an entry of the inbox. Its kinds are
-- a constraint, so the table is made anew.

CREATE TABLE inbox_timed (
    entry_id    INTEGER PRIMARY KEY,
    session_id  INTEGER REFERENCES sessions,
    generation  INTEGER,
    kind        TEXT NOT NULL CHECK (kind IN ('message', 'command', 'report', 'ignored', 'occasion',
                                              'goal')),
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
INSERT INTO inbox_timed (entry_id, session_id, generation, kind, source, external_id, sender, body, during_turn,
    accepted_by, received_ms, changed_ms, state, turn_id, reason, account, erased_ms)
SELECT entry_id, session_id, generation, kind, source, external_id, sender, body, during_turn,
    accepted_by, received_ms, changed_ms, state, turn_id, reason, account, erased_ms
FROM inbox ORDER BY entry_id;
DROP TABLE inbox;
ALTER TABLE inbox_timed RENAME TO inbox;

CREATE INDEX inbox_waiting ON inbox (session_id, entry_id) WHERE state = 'waiting';
CREATE INDEX inbox_by_turn ON inbox (turn_id) WHERE turn_id IS NOT NULL;
-- The oldest messages of strangers are deleted.
CREATE INDEX inbox_of_strangers ON inbox (entry_id) WHERE reason = 'not-allowed';
-- How many reports of processes came recently.
CREATE INDEX inbox_reports ON inbox (received_ms) WHERE kind = 'report';

ALTER TABLE turns ADD COLUMN apart INTEGER NOT NULL DEFAULT 0;
CREATE INDEX turns_apart ON turns (session_id, turn_id) WHERE apart = 1;

-- Standing orders. A removed one stays: its number is part of the keys of its occasions.
CREATE TABLE schedules (
    schedule_id INTEGER PRIMARY KEY,
    session_id  INTEGER NOT NULL REFERENCES sessions,
    person      TEXT NOT NULL,
    name        TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('at', 'every', 'cron')),
    expression  TEXT NOT NULL,
    zone        TEXT NOT NULL,                 -- as people name it; '': the gateway's
    prompt      TEXT NOT NULL,
    command     TEXT NOT NULL,
    place       TEXT NOT NULL CHECK (place IN ('here', 'thread', 'fresh')),
    late        TEXT NOT NULL CHECK (late IN ('run', 'ask', 'skip')),
    late_ms     INTEGER,                       -- NULL: as its kind says
    overlap     TEXT NOT NULL CHECK (overlap IN ('skip', 'queue')),
    quiet       INTEGER NOT NULL CHECK (quiet IN (0, 1)),
    state       TEXT NOT NULL CHECK (state IN ('armed', 'paused', 'spent', 'disabled', 'removed')),
    reason      TEXT,
    revision    INTEGER NOT NULL DEFAULT 1,    -- how often it was changed
    due_ms      INTEGER,                       -- when it is looked at next
    again_of    INTEGER,                       -- the due time that is tried again then
    tries       INTEGER NOT NULL DEFAULT 0,
    failures    INTEGER NOT NULL DEFAULT 0,    -- in a row
    alerted_ms  INTEGER,                       -- when the person was told that it fails
    zone_rules  TEXT NOT NULL DEFAULT '',      -- by which rules of zones `due_ms` was reckoned
    recheck     INTEGER NOT NULL DEFAULT 0 CHECK (recheck IN (0, 1)),  -- the clock went back since
    created_by  TEXT NOT NULL,
    created_ms  INTEGER NOT NULL,
    changed_ms  INTEGER NOT NULL,
    -- The same call or command makes two.
    UNIQUE (created_by),
    -- Armed without a time, or a time on one that is not armed.
    CHECK ((state = 'armed') = (due_ms IS NOT NULL)),
    -- Nothing to do, or two things.
    CHECK ((prompt = '') <> (command = ''))
) STRICT;

-- Finding what is due costs nothing per schedule that is not.
CREATE INDEX schedules_due ON schedules (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX schedules_recheck ON schedules (schedule_id) WHERE recheck = 1;
CREATE INDEX schedules_by_session ON schedules (session_id, schedule_id);

-- What became of each due time. One row may stand for several that were missed.
CREATE TABLE occasions (
    schedule_id INTEGER NOT NULL REFERENCES schedules,
    due_ms      INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    verdict     TEXT NOT NULL CHECK (verdict IN ('fired', 'late', 'missed', 'skipped', 'asked',
                                                 'dropped')),
    rule        TEXT NOT NULL,
    count       INTEGER NOT NULL DEFAULT 1,
    entry_id    INTEGER,
    decided_ms  INTEGER NOT NULL,
    -- A due time that is decided twice.
    PRIMARY KEY (schedule_id, due_ms)
) STRICT, WITHOUT ROWID;

CREATE INDEX occasions_by_entry ON occasions (entry_id) WHERE entry_id IS NOT NULL;

-- The zone that a person told us.
CREATE TABLE zones (
    channel TEXT NOT NULL,
    person  TEXT NOT NULL,
    zone    TEXT NOT NULL,                     -- '': the person was asked
    PRIMARY KEY (channel, person)
) STRICT, WITHOUT ROWID;

CREATE TABLE goals (
    goal_id       INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions,
    generation    INTEGER NOT NULL,
    person        TEXT NOT NULL,
    text          TEXT NOT NULL,
    criteria      TEXT NOT NULL DEFAULT '[]',
    state         TEXT NOT NULL CHECK (state IN ('active', 'judging', 'waiting', 'paused', 'done',
                                                 'cleared')),
    reason        TEXT,
    rule          TEXT,
    step          INTEGER NOT NULL DEFAULT 0,
    steps_max     INTEGER NOT NULL,
    tokens        INTEGER NOT NULL DEFAULT 0,
    tokens_max    INTEGER NOT NULL,
    wait_process  INTEGER,
    wait_until_ms INTEGER,
    judged_turn   INTEGER,
    revision      INTEGER NOT NULL DEFAULT 1,
    worker_id     INTEGER REFERENCES workers,
    epoch         INTEGER NOT NULL DEFAULT 0,
    tries         INTEGER NOT NULL DEFAULT 0,
    unreadable    INTEGER NOT NULL DEFAULT 0,
    not_before_ms INTEGER NOT NULL DEFAULT 0,
    created_by    TEXT NOT NULL,
    created_ms    INTEGER NOT NULL,
    changed_ms    INTEGER NOT NULL,
    UNIQUE (created_by),
    -- A worker on a goal that is not judged.
    CHECK (worker_id IS NULL OR state = 'judging'),
    -- Waiting for nothing, or a wait without waiting.
    CHECK ((state = 'waiting') = (wait_process IS NOT NULL OR wait_until_ms IS NOT NULL)),
    CHECK (step >= 0 AND step <= steps_max)
) STRICT;

-- Two goals at once in one session.
CREATE UNIQUE INDEX one_goal ON goals (session_id) WHERE state NOT IN ('done', 'cleared');
CREATE INDEX goals_judging ON goals (not_before_ms) WHERE state = 'judging';
CREATE INDEX goals_waiting ON goals (goal_id) WHERE state = 'waiting';

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

CREATE TRIGGER journal_schedule_made AFTER INSERT ON schedules BEGIN
    INSERT INTO journal (at_ms, subject, number, event, after, session_id)
    VALUES (NEW.created_ms, 'schedule', NEW.schedule_id, 'made', NEW.state, NEW.session_id);
END;

CREATE TRIGGER journal_schedule_moved AFTER UPDATE OF state ON schedules
    WHEN NEW.state <> OLD.state OR NEW.revision <> OLD.revision
BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, reason, session_id)
    VALUES (NEW.changed_ms, 'schedule', NEW.schedule_id,
            CASE WHEN NEW.revision <> OLD.revision THEN 'changed' ELSE NEW.state END, OLD.state,
            NEW.state, NEW.reason, NEW.session_id);
END;

CREATE TRIGGER journal_occasion AFTER INSERT ON occasions BEGIN
    INSERT INTO journal (at_ms, subject, number, event, rule, reason, session_id)
    SELECT NEW.decided_ms, 'schedule', NEW.schedule_id, NEW.verdict, NEW.rule, NEW.due_ms, session_id
    FROM schedules WHERE schedule_id = NEW.schedule_id;
END;

CREATE TRIGGER journal_goal_begun AFTER INSERT ON goals BEGIN
    INSERT INTO journal (at_ms, subject, number, event, after, session_id)
    VALUES (NEW.created_ms, 'goal', NEW.goal_id, 'begun', NEW.state, NEW.session_id);
END;

CREATE TRIGGER journal_goal_moved AFTER UPDATE OF state ON goals WHEN NEW.state <> OLD.state BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, rule, session_id, turn_id)
    VALUES (NEW.changed_ms, 'goal', NEW.goal_id, NEW.state, OLD.state, NEW.state, NEW.rule,
            NEW.session_id, NEW.judged_turn);
END;
