-- What was spent and reserved of one limit on one day. Amounts are millionths of a dollar, or tokens.
CREATE TABLE purses (
    purse_id INTEGER PRIMARY KEY,
    day      INTEGER NOT NULL,
    scope    TEXT NOT NULL CHECK (scope IN ('all', 'person', 'chat', 'schedule')),
    subject  TEXT NOT NULL,
    unit     TEXT NOT NULL CHECK (unit IN ('money', 'tokens')),
    used     INTEGER NOT NULL DEFAULT 0 CHECK (used >= 0),
    reserved INTEGER NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    more     INTEGER NOT NULL DEFAULT 0 CHECK (more >= 0), -- what an owner added to the limit
    -- Two counters of one limit.
    UNIQUE (day, scope, subject, unit)
) STRICT;

-- Calls that reserved their estimate and are not settled. The reservation of a worker that is gone
-- counts as used.
CREATE TABLE bills (
    bill_id   INTEGER PRIMARY KEY,
    worker_id INTEGER NOT NULL,
    purses    TEXT NOT NULL,                   -- which counters hold it
    model     TEXT NOT NULL,
    amount    INTEGER NOT NULL CHECK (amount >= 0),
    made_ms   INTEGER NOT NULL
) STRICT;
