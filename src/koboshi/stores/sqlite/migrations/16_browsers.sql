-- Browsers that were let in are rows: they can be listed and revoked.
CREATE TABLE browsers (
    browser_id  INTEGER PRIMARY KEY,
    cookie_hash TEXT NOT NULL UNIQUE,          -- two browsers with one cookie
    proof_hash  TEXT NOT NULL,
    label       TEXT NOT NULL,
    made_ms     INTEGER NOT NULL,
    used_ms     INTEGER NOT NULL,              -- written once an hour at most
    expires_ms  INTEGER NOT NULL,
    revoked_ms  INTEGER,
    -- One that was out before it was in.
    CHECK (expires_ms > made_ms)
) STRICT;
