-- Several gateways on one database: deaths are counted where they happen, an account has one owner, and what
-- lay in one home or in memory can be had on every node.
ALTER TABLE workers ADD COLUMN died_over INTEGER NOT NULL DEFAULT 0;
CREATE INDEX workers_dead ON workers (ended_ms) WHERE died_over > 0;
CREATE INDEX workers_by_home ON workers (home);

ALTER TABLE accounts ADD COLUMN owner INTEGER REFERENCES workers(worker_id);
ALTER TABLE accounts ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;

CREATE TABLE login_codes (
    code_hash  TEXT PRIMARY KEY,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE kept_files (
    path    TEXT NOT NULL,
    part    INTEGER NOT NULL,
    content TEXT NOT NULL,
    kept_ms INTEGER NOT NULL,
    PRIMARY KEY (path, part)
) STRICT, WITHOUT ROWID;
