-- Foreign agents: their conversations, their processes, and what is said on the wires.
ALTER TABLE processes ADD COLUMN agent TEXT NOT NULL DEFAULT '';

-- Conversations with foreign agents, which speak the Agent Client Protocol.
CREATE TABLE agent_sessions (
    agent_session_id INTEGER PRIMARY KEY,
    session_id  INTEGER NOT NULL REFERENCES sessions,
    agent       TEXT NOT NULL,                 -- as the configuration names it
    external_id TEXT,                          -- the agent's own name of it; NULL: it has not begun it
    state       TEXT NOT NULL CHECK (state IN ('open', 'closed')),
    reason      TEXT,                          -- why it was closed
    opened_ms   INTEGER NOT NULL,
    closed_ms   INTEGER,
    -- Closed without a time, or a time on an open one.
    CHECK ((state = 'closed') = (closed_ms IS NOT NULL))
) STRICT;

-- Two agents at once in one chat.
CREATE UNIQUE INDEX one_agent_session ON agent_sessions (session_id) WHERE state = 'open';

-- The processes of foreign agents, and how far each was read.
CREATE TABLE agent_processes (
    process_id       INTEGER PRIMARY KEY REFERENCES processes,
    session_id       INTEGER NOT NULL REFERENCES sessions,
    agent_session_id INTEGER NOT NULL REFERENCES agent_sessions,
    read_offset      INTEGER NOT NULL DEFAULT 0,  -- what lies below in its spool is stored
    said             TEXT NOT NULL DEFAULT '',    -- its words since its last step
    can_load         INTEGER NOT NULL DEFAULT 0 CHECK (can_load IN (0, 1)),
    replayed_turn    INTEGER,                     -- the newest turn whose mark its replay held
    events           INTEGER NOT NULL DEFAULT 0,
    used_ms          INTEGER NOT NULL,            -- when a turn last had to do with it
    drained_ms       INTEGER,                     -- it has ended, and all that it wrote is stored
    CHECK (read_offset >= 0)
) STRICT;

CREATE INDEX agent_processes_by_session ON agent_processes (agent_session_id, process_id);
CREATE INDEX agent_processes_undrained ON agent_processes (process_id) WHERE drained_ms IS NULL;

-- What is said to an agent. A row is committed before the file that its runner feeds, and makes the same
-- file after a kill. The number is the id of the message on the wire.
CREATE TABLE agent_messages (
    process_id INTEGER NOT NULL REFERENCES agent_processes,
    number     INTEGER NOT NULL,
    session_id INTEGER NOT NULL REFERENCES sessions,
    kind       TEXT NOT NULL CHECK (kind IN ('initialize', 'new', 'load', 'prompt', 'cancel', 'reply')),
    turn_id    INTEGER REFERENCES turns,
    rule       TEXT,                           -- of a prompt after a death: the rule that sent it
    body       TEXT NOT NULL,
    made_ms    INTEGER NOT NULL,
    updates    INTEGER NOT NULL DEFAULT 0,     -- of a prompt: what the agent has told since
    begun      INTEGER CHECK (begun IN (0, 1)),  -- of a prompt of a dead process: whether a byte of it was fed
    asked_ms   INTEGER,                        -- a person was asked whether to go on after its death
    settled_ms INTEGER,
    error      TEXT,                           -- why the agent refused it
    stop       TEXT,                           -- of a prompt: why the agent stopped
    tokens_in  INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (process_id, number),
    -- An outcome of what is not settled.
    CHECK (settled_ms IS NOT NULL OR (error IS NULL AND stop IS NULL))
) STRICT, WITHOUT ROWID;

-- A prompt that reaches one process twice.
CREATE UNIQUE INDEX one_prompt ON agent_messages (process_id, turn_id) WHERE kind = 'prompt';
CREATE INDEX agent_prompts_by_turn ON agent_messages (turn_id, process_id) WHERE kind = 'prompt';

-- What an agent asks of us, known by where it stands in the spool. Its effect and its answer hang on it.
CREATE TABLE agent_requests (
    process_id   INTEGER NOT NULL REFERENCES agent_processes,
    spool_offset INTEGER NOT NULL,
    session_id   INTEGER NOT NULL REFERENCES sessions,
    turn_id      INTEGER REFERENCES turns,     -- NULL: it came outside of a turn
    external_id  TEXT NOT NULL,                -- the agent's id of it, as JSON
    method       TEXT NOT NULL,
    params       TEXT NOT NULL,
    call_id      TEXT,                         -- of a permission that a person is asked for
    answer       INTEGER,                      -- the number of the message that answers it
    note         TEXT,                         -- what was decided about it
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (process_id, spool_offset)
) STRICT, WITHOUT ROWID;

CREATE INDEX agent_requests_open ON agent_requests (process_id, spool_offset) WHERE answer IS NULL;

-- What else an agent told: plans, thoughts, and whatever came outside of a turn. Never delivered.
CREATE TABLE agent_events (
    process_id   INTEGER NOT NULL REFERENCES agent_processes,
    spool_offset INTEGER NOT NULL,
    session_id   INTEGER NOT NULL REFERENCES sessions,
    turn_id      INTEGER REFERENCES turns,
    kind         TEXT NOT NULL,
    body         TEXT NOT NULL,
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (process_id, spool_offset)
) STRICT, WITHOUT ROWID;

CREATE INDEX agent_events_by_turn ON agent_events (turn_id, process_id, spool_offset)
    WHERE turn_id IS NOT NULL;
