-- A yes is bound to what it was given for, literal text is marked as such, and rules can be kept.
ALTER TABLE calls ADD COLUMN approved_seal TEXT;
ALTER TABLE outbox ADD COLUMN literal TEXT;

CREATE TABLE approval_rules (
    rule_id    INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions,
    tool       TEXT NOT NULL,
    rule_key   TEXT NOT NULL,                  -- the hash by which the same is known again
    shown      TEXT NOT NULL,                  -- what was allowed, as it was shown
    made_by    TEXT NOT NULL,
    made_ms    INTEGER NOT NULL,
    revoked_by TEXT,
    revoked_ms INTEGER,
    -- Revoked by no person, or at no time.
    CHECK ((revoked_by IS NULL) = (revoked_ms IS NULL))
) STRICT;

CREATE UNIQUE INDEX one_rule ON approval_rules (session_id, rule_key) WHERE revoked_ms IS NULL;
