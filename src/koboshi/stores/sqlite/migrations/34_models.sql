-- Models of the chain that are not asked until a moment, with why. A row stays until a reply of the model
-- deletes it, so that failures in a row make longer benches.
CREATE TABLE model_benches (
    model    TEXT NOT NULL,                    -- as the configuration names it
    node     TEXT NOT NULL,                    -- where it is out of reach; '': on all nodes
    trouble  TEXT NOT NULL,
    reason   TEXT NOT NULL,
    tries    INTEGER NOT NULL CHECK (tries > 0),
    since_ms INTEGER NOT NULL,                 -- the first failure of the row
    until_ms INTEGER NOT NULL,
    wait_ms  INTEGER NOT NULL,                 -- its length
    PRIMARY KEY (model, node)
) STRICT, WITHOUT ROWID;

-- Which model a turn is on, where that is not the first one.
CREATE TABLE turn_models (
    turn_id INTEGER PRIMARY KEY REFERENCES turns,
    model   TEXT NOT NULL,
    because TEXT NOT NULL,
    at_ms   INTEGER NOT NULL
) STRICT;

CREATE TRIGGER journal_model_taken AFTER INSERT ON turn_models BEGIN
    INSERT INTO journal (at_ms, subject, number, event, after, reason, session_id, turn_id)
    SELECT NEW.at_ms, 'model', NEW.turn_id, 'taken', NEW.model, NEW.because, session_id, NEW.turn_id
    FROM turns WHERE turn_id = NEW.turn_id;
END;

CREATE TRIGGER journal_model_changed AFTER UPDATE OF model ON turn_models BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, reason, session_id, turn_id)
    SELECT NEW.at_ms, 'model', NEW.turn_id, 'taken', OLD.model, NEW.model, NEW.because, session_id,
           NEW.turn_id
    FROM turns WHERE turn_id = NEW.turn_id;
END;
