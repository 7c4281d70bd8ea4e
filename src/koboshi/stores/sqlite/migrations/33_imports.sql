-- Homes of other gateways that were moved in. Their files are staged in the home until they are in place.
CREATE TABLE imports (
    digest       TEXT PRIMARY KEY,             -- of all that was moved in, and the name of its folder
    source       TEXT NOT NULL,                -- 'hermes', 'openclaw'
    files        TEXT NOT NULL,                -- where each goes, as JSON
    committed_ms INTEGER NOT NULL,
    finished_ms  INTEGER                       -- when all files were in place; NULL: a start finishes it
) STRICT;

-- Finding what is to be finished costs nothing.
CREATE INDEX imports_unfinished ON imports (digest) WHERE finished_ms IS NULL;
