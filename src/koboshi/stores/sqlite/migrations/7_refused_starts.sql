-- A boot can end because it could not start as it was configured.
CREATE TABLE workers_refused (
    worker_id    INTEGER PRIMARY KEY,
    host         TEXT NOT NULL,
    pid          INTEGER NOT NULL,
    birth        TEXT NOT NULL,
    version      TEXT NOT NULL,
    started_ms   INTEGER NOT NULL,
    heartbeat_ms INTEGER NOT NULL,
    draining     INTEGER NOT NULL DEFAULT 0 CHECK (draining IN (0, 1)),
    restart_by   TEXT,
    found_dead   INTEGER NOT NULL DEFAULT 0,
    report       TEXT,
    memory_group  TEXT,
    group_kills   INTEGER,
    machine_kills INTEGER,
    ended_ms     INTEGER,
    ended_how    TEXT CHECK (ended_how IN
                             ('stopped', 'leftovers', 'restart', 'killed', 'memory', 'rebooted',
                              'refused')),
    -- An end without a time, or a time without an end.
    CHECK ((ended_ms IS NULL) = (ended_how IS NULL))
) STRICT;

-- The triggers of the old table go with it, so the copy writes no lines of the journal.
INSERT INTO workers_refused (worker_id, host, pid, birth, version, started_ms, heartbeat_ms, draining,
                             restart_by, found_dead, report, memory_group, group_kills, machine_kills,
                             ended_ms, ended_how)
SELECT worker_id, host, pid, birth, version, started_ms, heartbeat_ms, draining,
       restart_by, found_dead, report, memory_group, group_kills, machine_kills, ended_ms, ended_how
FROM workers ORDER BY worker_id;
DROP TABLE workers;
ALTER TABLE workers_refused RENAME TO workers;

CREATE INDEX workers_not_ended ON workers (worker_id) WHERE ended_ms IS NULL;
CREATE INDEX workers_unclean ON workers (worker_id) WHERE found_dead > 0;
CREATE INDEX workers_restarted ON workers (restart_by) WHERE restart_by IS NOT NULL;

CREATE TRIGGER journal_worker_started AFTER INSERT ON workers BEGIN
    INSERT INTO journal (at_ms, subject, number, event, reason, worker_id)
    VALUES (NEW.started_ms, 'worker', NEW.worker_id, 'started', NEW.version, NEW.worker_id);
END;

CREATE TRIGGER journal_worker_reported AFTER UPDATE OF report ON workers BEGIN
    INSERT INTO journal (at_ms, subject, number, event, reason, worker_id)
    VALUES (NEW.heartbeat_ms, 'worker', NEW.worker_id, 'booted', NEW.report, NEW.worker_id);
END;

CREATE TRIGGER journal_worker_ended AFTER UPDATE OF ended_ms ON workers BEGIN
    INSERT INTO journal (at_ms, subject, number, event, reason, worker_id)
    VALUES (NEW.ended_ms, 'worker', NEW.worker_id, 'ended', NEW.ended_how, NEW.worker_id);
END;
