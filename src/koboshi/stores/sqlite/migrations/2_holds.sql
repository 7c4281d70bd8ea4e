-- Starts that held everything owed: the database went back in time, or the operator asked for it.
CREATE TABLE holds (
    hold_id    INTEGER PRIMARY KEY,
    -- Held twice for one reason.
    cause      TEXT NOT NULL UNIQUE,
    gap        TEXT,                           -- what is gone, in words for the operator
    begun_ms   INTEGER NOT NULL,
    settled_ms INTEGER                         -- the operator has decided about what was held
) STRICT;

CREATE INDEX holds_open ON holds (hold_id) WHERE gap IS NOT NULL AND settled_ms IS NULL;
