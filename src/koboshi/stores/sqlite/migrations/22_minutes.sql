-- What each minute was like, for the charts of the page: counted from the journal behind `upto_seq`.
CREATE TABLE minutes (
    minute         INTEGER PRIMARY KEY,        -- since 1970
    upto_seq       INTEGER NOT NULL,           -- the journal is counted up to this line
    messages       INTEGER NOT NULL DEFAULT 0,
    errors         INTEGER NOT NULL DEFAULT 0, -- turns that failed, deliveries that were given up
    latency_p50_ms INTEGER,                    -- of the turns that were answered; NULL: none was
    latency_p95_ms INTEGER,
    tokens         TEXT NOT NULL DEFAULT '[]', -- by model
    heard          TEXT NOT NULL DEFAULT '[]', -- channels with messages, and when each had the last one
    memory_bytes   INTEGER,
    store_bytes    INTEGER
) STRICT;
