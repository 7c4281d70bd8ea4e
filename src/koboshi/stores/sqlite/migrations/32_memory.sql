-- What the agent remembers, and what a turn was shown.
-- Whose memory there is: a person's on a channel, or a group's. The row stays when its words are erased.
CREATE TABLE memory_scopes (
    scope_id   INTEGER PRIMARY KEY,
    channel    TEXT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('person', 'chat')),
    name       TEXT NOT NULL,                  -- the platform's id; '': the one owner of the channel
    revision   INTEGER NOT NULL DEFAULT 0,
    erased_revision INTEGER NOT NULL DEFAULT 0, -- files from before it are not read any more
    changed_ms INTEGER NOT NULL,
    -- Two memories of one person, or of one group.
    UNIQUE (channel, kind, name),
    CHECK (erased_revision <= revision)
) STRICT;

CREATE INDEX memory_scopes_changed ON memory_scopes (changed_ms);

-- What is remembered, since which revision of its scope, and until which.
CREATE TABLE memories (
    memory_id INTEGER PRIMARY KEY,
    scope_id  INTEGER NOT NULL REFERENCES memory_scopes,
    shelf     TEXT NOT NULL CHECK (shelf IN ('memory', 'user')),
    text      TEXT NOT NULL,
    turn_id   INTEGER REFERENCES turns,        -- where it was noted; NULL: by hand, or by the operator
    born      INTEGER NOT NULL,
    died      INTEGER,
    -- Gone before it was there.
    CHECK (died IS NULL OR died > born)
) STRICT;

CREATE INDEX memories_alive ON memories (scope_id, memory_id) WHERE died IS NULL;
CREATE INDEX memories_begun ON memories (scope_id, born);
CREATE INDEX memories_gone ON memories (scope_id, died) WHERE died IS NOT NULL;
CREATE INDEX memories_of_turn ON memories (turn_id) WHERE turn_id IS NOT NULL;

-- The changes of a memory, each by the call, the command or the hand that made it.
CREATE TABLE memory_revisions (
    scope_id INTEGER NOT NULL REFERENCES memory_scopes,
    revision INTEGER NOT NULL,
    kind     TEXT NOT NULL CHECK (kind IN ('add', 'replace', 'remove', 'hand', 'undo', 'erase')),
    made_by  TEXT NOT NULL,                    -- call:<turn>/<id>, entry:<id>, hand:…, operator:…
    turn_id  INTEGER REFERENCES turns,
    undoes   INTEGER,                          -- the revision that it takes back
    words    TEXT NOT NULL,                    -- what the caller was told
    at_ms    INTEGER NOT NULL,
    PRIMARY KEY (scope_id, revision),
    -- A call that acts twice.
    UNIQUE (made_by)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_revisions_of_turn ON memory_revisions (turn_id) WHERE turn_id IS NOT NULL;

-- Contents of memory files that are known, by home: those that were written, and hand edits that were read.
CREATE TABLE memory_pictures (
    scope_id INTEGER NOT NULL REFERENCES memory_scopes,
    shelf    TEXT NOT NULL CHECK (shelf IN ('memory', 'user')),
    home     TEXT NOT NULL,
    digest   TEXT NOT NULL,
    revision INTEGER NOT NULL,
    written  INTEGER NOT NULL DEFAULT 0 CHECK (written IN (0, 1)),  -- the file is there
    trouble  TEXT,                             -- why a hand edit is not taken over
    PRIMARY KEY (scope_id, shelf, home, digest)
) STRICT, WITHOUT ROWID;

-- What a turn was shown beside its conversation, the same after every crash.
CREATE TABLE shown_texts (
    digest TEXT PRIMARY KEY,
    text   TEXT NOT NULL,
    at_ms  INTEGER NOT NULL                    -- when a turn was last given it
) STRICT, WITHOUT ROWID;

CREATE TABLE turn_shown (
    turn_id  INTEGER PRIMARY KEY REFERENCES turns,
    digest   TEXT NOT NULL,
    scope_id INTEGER REFERENCES memory_scopes, -- NULL: no memory was in it
    revision INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX turn_shown_by_digest ON turn_shown (digest);
