-- The newest whole schema, for every store. Every constraint says what it makes impossible. Each change
-- of this file comes with a script in stores/sqlite/migrations/ that changes a database of the version
-- before in the same way.
-- Times are milliseconds since 1970. Ids grow; the newest row of a table is never deleted.

CREATE TABLE workers (
    worker_id    INTEGER PRIMARY KEY,
    host         TEXT NOT NULL,
    pid          INTEGER NOT NULL,
    birth        TEXT NOT NULL,
    version      TEXT NOT NULL,
    started_ms   INTEGER NOT NULL,
    heartbeat_ms INTEGER NOT NULL,
    draining     INTEGER NOT NULL DEFAULT 0 CHECK (draining IN (0, 1)),
    restart_by   TEXT,                         -- who requested a restart: entry:<id>, call:<turn>/<id>
    found_dead   INTEGER NOT NULL DEFAULT 0,   -- turns that were running under a worker that is gone
    report       TEXT,                         -- what this boot found and decided
    -- How often the operating system had killed for lack of memory at the last heartbeat; NULL: unknown.
    memory_group  TEXT,
    group_kills   INTEGER,
    machine_kills INTEGER,
    ended_ms     INTEGER,
    ended_how    TEXT CHECK (ended_how IN
                             ('stopped', 'leftovers', 'restart', 'killed', 'memory', 'rebooted',
                              'refused')),
    node         TEXT NOT NULL DEFAULT '',     -- the machine, by the name that the operator knows
    home         TEXT NOT NULL DEFAULT '',     -- the random id of the home that it owned
    died_over    INTEGER NOT NULL DEFAULT 0,   -- turns that it ran when another node found it dead
    fingerprint  TEXT NOT NULL DEFAULT '',     -- a mark for each section of its configuration
    -- An end without a time, or a time without an end.
    CHECK ((ended_ms IS NULL) = (ended_how IS NULL))
) STRICT;

CREATE INDEX workers_not_ended ON workers (worker_id) WHERE ended_ms IS NULL;
-- The boot breaker counts them.
CREATE INDEX workers_unclean ON workers (worker_id) WHERE found_dead > 0;
CREATE INDEX workers_dead ON workers (ended_ms) WHERE died_over > 0;
-- Whether a home has a boot that lives.
CREATE INDEX workers_by_home ON workers (home);
CREATE INDEX workers_restarted ON workers (restart_by) WHERE restart_by IS NOT NULL;

-- People who were paired by a code, beside those in the configuration. The key is the platform's stable
-- id. The name is what they call themselves, and is only shown.
CREATE TABLE people (
    channel    TEXT NOT NULL,
    person     TEXT NOT NULL,
    name       TEXT NOT NULL,
    entry_id   INTEGER NOT NULL,               -- the message that was answered with the code
    paired_ms  INTEGER NOT NULL,
    revoked_ms INTEGER,                        -- when the right was taken away
    role       TEXT NOT NULL DEFAULT 'member' CHECK (role IN ('member', 'owner')),
    role_ms    INTEGER,                        -- when it was given; NULL: by an upgrade, no owner was told
    PRIMARY KEY (channel, person)
) STRICT, WITHOUT ROWID;

-- Strangers who have a code, or get none for a while. No foreign key on the entry: messages of strangers
-- are deleted sooner than the pairing.
CREATE TABLE pairings (
    channel    TEXT NOT NULL,
    person     TEXT NOT NULL,
    name       TEXT NOT NULL,
    session_id INTEGER NOT NULL REFERENCES sessions,  -- their private chat
    entry_id   INTEGER NOT NULL,
    code_hash  TEXT,                           -- NULL: the person gets no code until it expires
    wrong      INTEGER NOT NULL DEFAULT 0,     -- wrong guesses since it was offered
    offered_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    -- Two codes for one person.
    PRIMARY KEY (channel, person),
    CHECK (expires_ms >= offered_ms)
) STRICT, WITHOUT ROWID;

-- Browsers that were let in. What one shows is stored as hashes only. A row outlives the gateway; it
-- ends when it is revoked, was idle for long, or is too old.
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

-- Codes that let a browser in, once, as hashes. Any gateway on the database redeems them.
CREATE TABLE login_codes (
    code_hash  TEXT PRIMARY KEY,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Copies of files of a home that other nodes need: owed to people, or sent along by them.
CREATE TABLE kept_files (
    path    TEXT NOT NULL,                     -- below the home
    part    INTEGER NOT NULL,                  -- pieces of a bounded size
    content TEXT NOT NULL,                     -- in base64
    kept_ms INTEGER NOT NULL,
    PRIMARY KEY (path, part)
) STRICT, WITHOUT ROWID;

-- The account of a channel on its platform. Another account has other ids for everything. A channel that
-- is not here has no account: ''.
CREATE TABLE accounts (
    channel  TEXT PRIMARY KEY,
    account  TEXT NOT NULL CHECK (account <> ''),
    bound_ms INTEGER NOT NULL,
    -- The last boot that connected as this account, and when it first did.
    connected_by INTEGER REFERENCES workers(worker_id),
    connected_ms INTEGER,
    -- The boot that alone receives and sends, and how often that changed; NULL: none, or no such rule.
    owner        INTEGER REFERENCES workers(worker_id),
    epoch        INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE cursors (
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    token   TEXT NOT NULL,
    PRIMARY KEY (channel, account)
) STRICT, WITHOUT ROWID;

-- How far each chat was read, for platforms where a chat is caught up with by itself. Written in the
-- transaction that stores what was read, so it is never ahead of that.
CREATE TABLE watermarks (
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    chat    TEXT NOT NULL,
    token   TEXT NOT NULL,
    PRIMARY KEY (channel, account, chat)
) STRICT, WITHOUT ROWID;

-- The random part of send keys. Ids of deliveries begin again in a new or restored database, and a
-- platform would take an old message for the new answer. So a restore deletes the row, and the next
-- send makes another.
CREATE TABLE send_ids (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    random TEXT NOT NULL CHECK (length(random) BETWEEN 8 AND 10)
) STRICT;

CREATE TABLE sessions (
    session_id   INTEGER PRIMARY KEY,
    channel      TEXT NOT NULL,
    chat         TEXT NOT NULL,
    thread       TEXT NOT NULL,
    generation   INTEGER NOT NULL DEFAULT 1,
    context_from INTEGER NOT NULL DEFAULT 0,
    settings     TEXT NOT NULL DEFAULT '{}',
    moved_ms     INTEGER NOT NULL DEFAULT 0,  -- the platform's ids from before are those of another chat
    created_ms   INTEGER NOT NULL,
    changed_ms   INTEGER NOT NULL,
    forgotten_seq INTEGER NOT NULL DEFAULT 0, -- the newest journal line of it that was deleted
    lock_key     INTEGER NOT NULL DEFAULT 0,  -- a transaction that writes its rows holds it; stays after a move
    node         TEXT,                        -- where its newest turn was claimed; NULL: never
    person       TEXT NOT NULL DEFAULT '',    -- whose private chat it is; '': a group, or not known
    aside        TEXT NOT NULL DEFAULT '',    -- the schedule that works here beside the conversation; '': it is that
    -- Two conversations on one route, or two places of one schedule.
    UNIQUE (channel, chat, thread, aside)
) STRICT;

-- The private chats of owners are asked about approvals.
CREATE INDEX sessions_private ON sessions (channel, person, thread) WHERE person <> '';

-- What an operator sets for a chat on the page: its name, and its place in the list.
CREATE TABLE chat_marks (
    session_id  INTEGER PRIMARY KEY REFERENCES sessions,
    title       TEXT NOT NULL DEFAULT '',      -- '': the first message names it
    pinned_ms   INTEGER,
    archived_ms INTEGER,
    deleted_ms  INTEGER                        -- it is listed again when a later turn opens in it
) STRICT;

CREATE TABLE turns (
    turn_id       INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions,
    generation    INTEGER NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('queued', 'running', 'waiting', 'suspended',
                                                 'answered', 'done', 'stopped', 'failed')),
    event         TEXT NOT NULL,               -- what brought it into this state
    rule          TEXT,                        -- the rule of the verdict that did, if one did
    reason        TEXT,
    epoch         INTEGER NOT NULL DEFAULT 0,
    worker_id     INTEGER REFERENCES workers,
    recoveries    INTEGER NOT NULL DEFAULT 0,
    crash_streak  INTEGER NOT NULL DEFAULT 0,
    person        TEXT NOT NULL,               -- who wrote the newest message of it
    anchor        TEXT NOT NULL,               -- the platform's id of that message
    first_seq     INTEGER NOT NULL,            -- its steps begin here
    question_seq  INTEGER,                     -- the open question, while it waits
    opened_ms     INTEGER NOT NULL,
    progressed_ms INTEGER NOT NULL,
    worked_ms     INTEGER NOT NULL DEFAULT 0,
    changed_ms    INTEGER NOT NULL,
    not_before_ms INTEGER NOT NULL DEFAULT 0,
    expires_ms    INTEGER,
    closed_ms     INTEGER,
    model_tries   INTEGER NOT NULL DEFAULT 0,
    model_waited_ms INTEGER NOT NULL DEFAULT 0, -- since the first failure of the present request
    model_failure TEXT,                         -- why the newest try of it failed
    wait_ms       INTEGER NOT NULL DEFAULT 0,  -- the length of the wait until not_before_ms
    newest_entry  INTEGER NOT NULL DEFAULT 0,  -- the newest entry when it came into its state
    apart         INTEGER NOT NULL DEFAULT 0,  -- it has a context of its own, and is in no other's
    -- A running turn without a worker, or a worker on a turn that does not run.
    CHECK ((state = 'running') = (worker_id IS NOT NULL)),
    -- A closed turn without a time, or a time on a turn that goes on.
    CHECK ((state IN ('done', 'stopped', 'failed')) = (closed_ms IS NOT NULL)),
    -- Waiting without a question, or without a limit.
    CHECK ((state = 'waiting') = (question_seq IS NOT NULL)),
    CHECK ((state = 'waiting') = (expires_ms IS NOT NULL)),
    CHECK (epoch >= 0 AND recoveries >= 0 AND crash_streak >= 0)
) STRICT;

-- Two open turns in one session.
CREATE UNIQUE INDEX one_open_turn ON turns (session_id)
    WHERE closed_ms IS NULL AND state <> 'answered';
-- Finding turns that are not closed costs nothing per closed turn, and finding turns that a person waits
-- for costs nothing per interrupted turn. A turn that a person replied to counts as such again.
CREATE INDEX turns_alive ON turns
    (state, (recoveries > 0 AND event <> 'replied'), not_before_ms, turn_id)
    WHERE closed_ms IS NULL;
CREATE INDEX turns_by_session ON turns (session_id);
-- What no other turn is shown.
CREATE INDEX turns_apart ON turns (session_id, turn_id) WHERE apart = 1;

CREATE TRIGGER closed_turns_never_change BEFORE UPDATE ON turns WHEN OLD.closed_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a closed turn never changes'); END;

-- Entries after this one came later than the turn's state. The entry that brought back a turn that was set
-- aside came before it was resumed, and still counts as newer. It writes only where the statement that moved
-- the turn has not done so: a second update of the row costs as much as the first.
CREATE TRIGGER turns_know_the_newest_entry AFTER UPDATE OF state ON turns
    WHEN NEW.closed_ms IS NULL AND NOT (NEW.event = 'resumed' AND OLD.state = 'suspended')
        AND NEW.newest_entry <> (SELECT coalesce(max(entry_id), 0) FROM inbox)
BEGIN
    UPDATE turns SET newest_entry = (SELECT coalesce(max(entry_id), 0) FROM inbox)
    WHERE turn_id = NEW.turn_id;
END;

CREATE TRIGGER epochs_only_grow BEFORE UPDATE OF epoch ON turns WHEN NEW.epoch <= OLD.epoch
BEGIN SELECT RAISE(ABORT, 'epochs only grow'); END;

CREATE TABLE inbox (
    entry_id    INTEGER PRIMARY KEY,
    session_id  INTEGER REFERENCES sessions,
    generation  INTEGER,
    kind        TEXT NOT NULL CHECK (kind IN ('message', 'command', 'report', 'ignored', 'occasion',
                                              'goal', 'task', 'child')),
    source      TEXT NOT NULL,
    external_id TEXT NOT NULL,
    sender      TEXT NOT NULL,
    body        TEXT NOT NULL,
    during_turn INTEGER,
    accepted_by INTEGER REFERENCES workers,
    received_ms INTEGER NOT NULL,
    changed_ms  INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('waiting', 'attached', 'handled', 'dropped',
                                               'ignored')),
    turn_id     INTEGER REFERENCES turns,
    reason      TEXT,
    account     TEXT NOT NULL DEFAULT '',      -- which account it was sent to, as in `accounts`
    erased_ms   INTEGER,
    -- The same message of a platform, or the same report of a process, stored twice.
    UNIQUE (source, account, external_id),
    -- Attached to no turn, or in a turn without being attached.
    CHECK ((state = 'attached') = (turn_id IS NOT NULL)),
    -- Dropped without a reason.
    CHECK ((state IN ('dropped', 'ignored')) = (reason IS NOT NULL)),
    -- An entry that may wake a session and belongs to none.
    CHECK (kind = 'ignored' OR (session_id IS NOT NULL AND generation IS NOT NULL)),
    CHECK ((kind = 'ignored') = (state = 'ignored'))
) STRICT;

CREATE INDEX inbox_waiting ON inbox (session_id, entry_id) WHERE state = 'waiting';
CREATE INDEX inbox_by_turn ON inbox (turn_id) WHERE turn_id IS NOT NULL;
-- The oldest messages of strangers are deleted.
CREATE INDEX inbox_of_strangers ON inbox (entry_id) WHERE reason = 'not-allowed';
-- How many reports of processes came recently.
CREATE INDEX inbox_reports ON inbox (received_ms) WHERE kind = 'report';

CREATE TABLE steps (
    seq        INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions,
    turn_id    INTEGER NOT NULL REFERENCES turns,
    epoch      INTEGER NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('message', 'note', 'reply', 'result', 'question',
                                             'answer', 'summary')),
    cause      TEXT NOT NULL,
    body       TEXT NOT NULL,
    at_ms      INTEGER NOT NULL,
    erased_ms  INTEGER
) STRICT;

CREATE INDEX steps_by_session ON steps (session_id);
-- Finding the newest summary costs nothing per step.
CREATE INDEX summaries ON steps (session_id) WHERE kind = 'summary';
-- Two answers in one turn.
CREATE UNIQUE INDEX one_answer ON steps (turn_id) WHERE kind = 'answer';
-- Two recovery notes for one life of a turn.
CREATE UNIQUE INDEX one_recovery_note ON steps (turn_id, epoch)
    WHERE kind = 'note' AND cause = 'recovery';
-- Two notes about one end.
CREATE UNIQUE INDEX one_end_note ON steps (turn_id) WHERE kind = 'note' AND cause = 'ended';

CREATE TRIGGER steps_never_change BEFORE UPDATE ON steps
    WHEN NOT (OLD.erased_ms IS NULL AND NEW.erased_ms IS NOT NULL AND NEW.seq = OLD.seq
              AND NEW.session_id = OLD.session_id AND NEW.turn_id = OLD.turn_id
              AND NEW.epoch = OLD.epoch AND NEW.kind = OLD.kind AND NEW.cause = OLD.cause
              AND NEW.at_ms = OLD.at_ms)
BEGIN SELECT RAISE(ABORT, 'the transcript is only appended to'); END;

CREATE TABLE calls (
    turn_id     INTEGER NOT NULL REFERENCES turns,
    call_id     TEXT NOT NULL,
    place       INTEGER NOT NULL,            -- the order within the turn
    tool        TEXT NOT NULL,
    arguments   TEXT NOT NULL,
    effect      TEXT NOT NULL CHECK (effect IN ('none', 'repeatable', 'resumable', 'once')),
    need        TEXT NOT NULL CHECK (need IN ('nobody', 'answer', 'approval')),
    provider_id TEXT NOT NULL,
    args_hash   TEXT NOT NULL,
    approved_by TEXT,
    approved_ms INTEGER,
    started_ms  INTEGER,
    died_ms     INTEGER,                     -- the gateway died while it ran
    finished_ms INTEGER,
    skipped_ms  INTEGER,                     -- it got its result without running
    outcome     TEXT CHECK (outcome IN ('ok', 'error', 'unknown', 'stopped')),
    approved_seal TEXT,                      -- what the yes is bound to: it starts under no other
    PRIMARY KEY (turn_id, call_id),
    -- A result of a call that never started, or a call that both started and was skipped.
    CHECK (finished_ms IS NULL OR started_ms IS NOT NULL),
    CHECK (skipped_ms IS NULL OR started_ms IS NULL),
    CHECK ((approved_by IS NULL) = (approved_ms IS NULL)),
    -- Started before it was approved.
    CHECK (started_ms IS NULL OR need <> 'approval' OR approved_ms IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    delivery_id   INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions,
    turn_id       INTEGER REFERENCES turns,
    cause         TEXT NOT NULL,
    part          INTEGER NOT NULL,
    parts         INTEGER NOT NULL,
    text          TEXT NOT NULL,
    choices       TEXT NOT NULL DEFAULT '[]',
    question      INTEGER,
    anchor        TEXT NOT NULL,
    file          TEXT,
    state         TEXT NOT NULL CHECK (state IN ('draft', 'owed', 'sending', 'held', 'delivered',
                                                 'rejected', 'abandoned')),
    attempts      INTEGER NOT NULL DEFAULT 0,
    ambiguous     INTEGER NOT NULL DEFAULT 0 CHECK (ambiguous IN (0, 1)),
    labelled      INTEGER NOT NULL DEFAULT 0 CHECK (labelled IN (0, 1)),
    not_before_ms INTEGER NOT NULL DEFAULT 0,
    worker_id     INTEGER REFERENCES workers,
    platform_id   TEXT,
    reason        TEXT,
    created_ms    INTEGER NOT NULL,
    changed_ms    INTEGER NOT NULL,
    settled_ms    INTEGER,
    wait_ms       INTEGER NOT NULL DEFAULT 0,  -- the length of the wait until not_before_ms
    aged_from_ms  INTEGER NOT NULL DEFAULT 0,  -- its age counts from here; moves with the clock
    tried_by      INTEGER REFERENCES workers,  -- the worker of the newest attempt
    unsure        INTEGER NOT NULL DEFAULT 0,  -- sends of unknown outcome
    strikes       INTEGER NOT NULL DEFAULT 0,  -- those while other sends were accepted
    tried_seq     INTEGER NOT NULL DEFAULT 0,  -- the newest journal line at the last attempt's end
    sent_seq      INTEGER NOT NULL DEFAULT 0,  -- the newest journal line when it was first sent
    settled_seq   INTEGER NOT NULL DEFAULT 0,  -- the newest journal line when its send was settled
    literal       TEXT,                        -- which characters of an approval are shown as they are
    erased_ms     INTEGER,
    -- The same text owed twice.
    UNIQUE (session_id, cause, part),
    -- A send without a worker.
    CHECK ((state = 'sending') = (worker_id IS NOT NULL)),
    -- Settled without a time, or a time on a delivery that is still owed.
    CHECK ((state IN ('delivered', 'rejected', 'abandoned')) = (settled_ms IS NOT NULL)),
    -- Given up without a reason.
    CHECK (state NOT IN ('rejected', 'abandoned') OR reason IS NOT NULL),
    -- Held, and due at a time.
    CHECK (state <> 'held' OR not_before_ms = 0),
    CHECK (part BETWEEN 1 AND parts)
) STRICT;

CREATE INDEX outbox_unsettled ON outbox (session_id, delivery_id) WHERE settled_ms IS NULL;
CREATE INDEX outbox_by_turn ON outbox (turn_id) WHERE turn_id IS NOT NULL;
-- Files of deliveries: the sweep looks for files that can no longer be fetched.
CREATE INDEX outbox_files ON outbox (delivery_id) WHERE file IS NOT NULL;
-- Finding deliveries that wait costs nothing per delivery that does not.
CREATE INDEX outbox_postponed ON outbox (not_before_ms)
    WHERE settled_ms IS NULL AND not_before_ms > 0;

-- What a person allowed for good in a chat. It spares a question inside the boundary, never outside.
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

-- The same allowed twice in one chat.
CREATE UNIQUE INDEX one_rule ON approval_rules (session_id, rule_key) WHERE revoked_ms IS NULL;

-- Chats in which a platform asked for a pause. The pause lasts over a restart.
CREATE TABLE quiet (
    channel  TEXT NOT NULL,
    chat     TEXT NOT NULL,
    until_ms INTEGER NOT NULL,
    wait_ms  INTEGER NOT NULL DEFAULT 0,       -- its length
    PRIMARY KEY (channel, chat)
) STRICT, WITHOUT ROWID;

-- The deliveries of a notice: those of its chat that were given up.
CREATE TABLE undelivered (
    notice_id   INTEGER NOT NULL REFERENCES outbox,
    delivery_id INTEGER NOT NULL REFERENCES outbox,
    PRIMARY KEY (notice_id, delivery_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX undelivered_by_delivery ON undelivered (delivery_id);

-- Starts that held everything that was owed: the database went back in time, or the operator asked for it.
CREATE TABLE holds (
    hold_id    INTEGER PRIMARY KEY,
    -- Held twice for one cause.
    cause      TEXT NOT NULL UNIQUE,
    gap        TEXT,                           -- what is gone, in words for the operator
    begun_ms   INTEGER NOT NULL,
    settled_ms INTEGER                         -- when the operator had decided about all of it
) STRICT;

CREATE INDEX holds_open ON holds (hold_id) WHERE gap IS NOT NULL AND settled_ms IS NULL;

CREATE TRIGGER settled_deliveries_never_change BEFORE UPDATE ON outbox
    WHEN OLD.settled_ms IS NOT NULL
        AND NOT (OLD.erased_ms IS NULL AND NEW.erased_ms IS NOT NULL AND NEW.state = OLD.state
                 AND NEW.session_id = OLD.session_id AND NEW.cause = OLD.cause
                 AND NEW.part = OLD.part AND NEW.settled_ms = OLD.settled_ms)
BEGIN SELECT RAISE(ABORT, 'a settled delivery never changes'); END;

CREATE TABLE processes (
    process_id    INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions,
    generation    INTEGER NOT NULL,
    turn_id       INTEGER NOT NULL REFERENCES turns,
    call_id       TEXT NOT NULL,
    foreground    INTEGER NOT NULL CHECK (foreground IN (0, 1)),
    command       TEXT NOT NULL,
    workdir       TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('starting', 'running', 'exited', 'killed', 'lost')),
    pid           INTEGER,
    birth         TEXT,
    turn_log_size INTEGER,
    started_ms    INTEGER NOT NULL,
    end_asked_ms  INTEGER,
    ended_ms      INTEGER,
    exit_code     INTEGER,
    reason        TEXT,                        -- why it ended
    exit_read_by  TEXT,
    remains_asked_ms INTEGER,                  -- the remains of a lost process are to be ended
    node          TEXT NOT NULL DEFAULT '',    -- where it runs
    home          TEXT NOT NULL DEFAULT '',    -- the home that has its folder and watches it
    -- What keeps it inside. A process that ran before there was a boundary ran without one.
    boundary      TEXT NOT NULL DEFAULT 'none' CHECK (boundary IN ('bubblewrap', 'landlock', 'none')),
    agent         TEXT NOT NULL DEFAULT '',    -- the foreign agent that it is, or works for; its end is not told
    -- Two processes for one call.
    UNIQUE (turn_id, call_id),
    CHECK ((state IN ('exited', 'killed', 'lost')) = (ended_ms IS NOT NULL))
) STRICT;

CREATE INDEX processes_alive ON processes (session_id) WHERE ended_ms IS NULL;
CREATE INDEX processes_by_session ON processes (session_id);
CREATE INDEX processes_ended ON processes (ended_ms) WHERE ended_ms IS NOT NULL;
-- Finding remains that are to be ended costs nothing per other process.
CREATE INDEX processes_with_remains ON processes (process_id) WHERE remains_asked_ms IS NOT NULL;

CREATE TRIGGER ended_processes_stay_ended BEFORE UPDATE OF state ON processes
    WHEN OLD.ended_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a process that has ended stays ended'); END;

-- A watcher has no route: its process has a session, and the session has a route.
CREATE TABLE watchers (
    watcher_id  INTEGER PRIMARY KEY,
    process_id  INTEGER NOT NULL REFERENCES processes,
    kind        TEXT NOT NULL CHECK (kind IN ('exit', 'match', 'every')),
    argument    TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('armed', 'fired', 'disarmed')),
    log_offset  INTEGER NOT NULL DEFAULT 0,
    reports     INTEGER NOT NULL DEFAULT 0,
    reported_ms INTEGER NOT NULL DEFAULT 0,   -- when its last report was heard
    noisy       INTEGER NOT NULL DEFAULT 0    -- reports in a row that could not show everything
) STRICT;

CREATE INDEX watchers_armed ON watchers (process_id) WHERE state = 'armed';
CREATE INDEX watchers_by_process ON watchers (process_id);

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

-- Up to which step the words of messages and answers are indexed. The index itself is the store's own.
CREATE TABLE search_place (
    one      INTEGER PRIMARY KEY CHECK (one = 1),  -- two places
    upto_seq INTEGER NOT NULL
) STRICT;

-- Wishes of people that their words are erased. The rows stay with their keys; only what they say goes.
CREATE TABLE erasures (
    erasure_id INTEGER PRIMARY KEY,
    channel    TEXT NOT NULL,
    person     TEXT NOT NULL,
    asked_by   TEXT NOT NULL,                  -- the person, or the operator
    asked_ms   INTEGER NOT NULL,
    files      TEXT,                           -- what is to be deleted, as JSON; NULL: it is gone
    done_ms    INTEGER                         -- files are gone, and the log is truncated
) STRICT;
CREATE INDEX erasures_open ON erasures (erasure_id) WHERE done_ms IS NULL;

-- Standing orders. A removed one stays: its number is part of the keys of its occasions.
CREATE TABLE schedules (
    schedule_id INTEGER PRIMARY KEY,
    session_id  INTEGER NOT NULL REFERENCES sessions,
    person      TEXT NOT NULL,
    name        TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('at', 'every', 'cron')),
    expression  TEXT NOT NULL,
    zone        TEXT NOT NULL,                 -- as people name it; '': the gateway's
    prompt      TEXT NOT NULL,
    command     TEXT NOT NULL,
    place       TEXT NOT NULL CHECK (place IN ('here', 'thread', 'fresh')),
    late        TEXT NOT NULL CHECK (late IN ('run', 'ask', 'skip')),
    late_ms     INTEGER,                       -- NULL: as its kind says
    overlap     TEXT NOT NULL CHECK (overlap IN ('skip', 'queue')),
    quiet       INTEGER NOT NULL CHECK (quiet IN (0, 1)),
    state       TEXT NOT NULL CHECK (state IN ('armed', 'paused', 'spent', 'disabled', 'removed')),
    reason      TEXT,
    revision    INTEGER NOT NULL DEFAULT 1,    -- how often it was changed
    due_ms      INTEGER,                       -- when it is looked at next
    again_of    INTEGER,                       -- the due time that is tried again then
    tries       INTEGER NOT NULL DEFAULT 0,
    failures    INTEGER NOT NULL DEFAULT 0,    -- in a row
    alerted_ms  INTEGER,                       -- when the person was told that it fails
    zone_rules  TEXT NOT NULL DEFAULT '',      -- by which rules of zones `due_ms` was reckoned
    recheck     INTEGER NOT NULL DEFAULT 0 CHECK (recheck IN (0, 1)),  -- the clock went back since
    created_by  TEXT NOT NULL,
    created_ms  INTEGER NOT NULL,
    changed_ms  INTEGER NOT NULL,
    plain       INTEGER NOT NULL DEFAULT 0 CHECK (plain IN (0, 1)),  -- its words are told as they are
    own_session INTEGER REFERENCES sessions,   -- where it works, if not in the conversation
    thread_why  TEXT,                          -- why it has no thread of its own
    -- The same call or command makes two.
    UNIQUE (created_by),
    -- Armed without a time, or a time on one that is not armed.
    CHECK ((state = 'armed') = (due_ms IS NOT NULL)),
    -- Nothing to do, or two things.
    CHECK ((prompt = '') <> (command = ''))
) STRICT;

-- Finding what is due costs nothing per schedule that is not.
CREATE INDEX schedules_due ON schedules (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX schedules_recheck ON schedules (schedule_id) WHERE recheck = 1;
CREATE INDEX schedules_by_session ON schedules (session_id, schedule_id);
-- What was told without the model since it last heard of the chat.
CREATE INDEX schedules_plain ON schedules (session_id, changed_ms) WHERE plain = 1;

-- What became of each due time. One row may stand for several that were missed.
CREATE TABLE occasions (
    schedule_id INTEGER NOT NULL REFERENCES schedules,
    due_ms      INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    verdict     TEXT NOT NULL CHECK (verdict IN ('fired', 'late', 'missed', 'skipped', 'asked',
                                                 'dropped')),
    rule        TEXT NOT NULL,
    count       INTEGER NOT NULL DEFAULT 1,
    entry_id    INTEGER,
    decided_ms  INTEGER NOT NULL,
    -- A due time that is decided twice.
    PRIMARY KEY (schedule_id, due_ms)
) STRICT, WITHOUT ROWID;

CREATE INDEX occasions_by_entry ON occasions (entry_id) WHERE entry_id IS NOT NULL;

-- The zone that a person told us.
CREATE TABLE zones (
    channel TEXT NOT NULL,
    person  TEXT NOT NULL,
    zone    TEXT NOT NULL,                     -- '': the person was asked
    told    INTEGER NOT NULL DEFAULT 1 CHECK (told IN (0, 1)),  -- by the person; 0: by the platform
    PRIMARY KEY (channel, person)
) STRICT, WITHOUT ROWID;

CREATE TABLE goals (
    goal_id       INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions,
    generation    INTEGER NOT NULL,
    person        TEXT NOT NULL,
    text          TEXT NOT NULL,
    criteria      TEXT NOT NULL DEFAULT '[]',
    state         TEXT NOT NULL CHECK (state IN ('active', 'judging', 'waiting', 'paused', 'done',
                                                 'cleared')),
    reason        TEXT,
    rule          TEXT,
    step          INTEGER NOT NULL DEFAULT 0,
    steps_max     INTEGER NOT NULL,
    tokens        INTEGER NOT NULL DEFAULT 0,
    tokens_max    INTEGER NOT NULL,
    wait_process  INTEGER,
    wait_until_ms INTEGER,
    judged_turn   INTEGER,
    revision      INTEGER NOT NULL DEFAULT 1,
    worker_id     INTEGER REFERENCES workers,
    epoch         INTEGER NOT NULL DEFAULT 0,
    tries         INTEGER NOT NULL DEFAULT 0,
    unreadable    INTEGER NOT NULL DEFAULT 0,
    not_before_ms INTEGER NOT NULL DEFAULT 0,
    created_by    TEXT NOT NULL,
    created_ms    INTEGER NOT NULL,
    changed_ms    INTEGER NOT NULL,
    UNIQUE (created_by),
    -- A worker on a goal that is not judged.
    CHECK (worker_id IS NULL OR state = 'judging'),
    -- Waiting for nothing, or a wait without waiting.
    CHECK ((state = 'waiting') = (wait_process IS NOT NULL OR wait_until_ms IS NOT NULL)),
    CHECK (step >= 0 AND step <= steps_max)
) STRICT;

-- Two goals at once in one session.
CREATE UNIQUE INDEX one_goal ON goals (session_id) WHERE state NOT IN ('done', 'cleared');
CREATE INDEX goals_judging ON goals (not_before_ms) WHERE state = 'judging';
CREATE INDEX goals_waiting ON goals (goal_id) WHERE state = 'waiting';

-- Sub-agents. The work of a turn that another session does; its parent hears of its end once, by an entry
-- of the inbox whose key is the child.
CREATE TABLE children (
    child_id    INTEGER PRIMARY KEY,
    session_id  INTEGER NOT NULL REFERENCES sessions,  -- its parent's
    generation  INTEGER NOT NULL,              -- of its parent, when it was made
    turn_id     INTEGER NOT NULL REFERENCES turns,
    call_id     TEXT NOT NULL,
    person      TEXT NOT NULL,
    name        TEXT NOT NULL,
    task        TEXT NOT NULL,
    depth       INTEGER NOT NULL CHECK (depth >= 1),
    state       TEXT NOT NULL CHECK (state IN ('waiting', 'working', 'ended')),
    own_session INTEGER REFERENCES sessions,   -- where it works; NULL: it has not begun
    how         TEXT,                          -- it ended
    made_ms     INTEGER NOT NULL,
    begun_ms    INTEGER,
    ended_ms    INTEGER,
    -- One call makes two.
    UNIQUE (turn_id, call_id),
    -- Two work in one place.
    UNIQUE (own_session),
    -- At work without a place, or since no time.
    CHECK (state <> 'working' OR own_session IS NOT NULL),
    CHECK ((own_session IS NULL) = (begun_ms IS NULL)),
    -- An end without a time, or without a word how.
    CHECK ((state = 'ended') = (ended_ms IS NOT NULL)),
    CHECK ((ended_ms IS NULL) = (how IS NULL))
) STRICT;

-- Finding those that are open costs nothing per one that has ended.
CREATE INDEX children_open ON children (session_id, child_id) WHERE ended_ms IS NULL;
CREATE INDEX children_by_session ON children (session_id, child_id);

CREATE TRIGGER ended_children_stay_ended BEFORE UPDATE OF state ON children WHEN OLD.ended_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a child that has ended stays ended'); END;
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

-- An entry that is taken away takes its occasion along.
CREATE TRIGGER occasions_are_dropped AFTER UPDATE OF state ON inbox
    WHEN NEW.state = 'dropped' AND NEW.kind = 'occasion'
BEGIN
    UPDATE occasions SET verdict = 'dropped', rule = 'taken-away' WHERE entry_id = NEW.entry_id;
END;

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

-- Whether the rows of this database are those that count, once they were moved from one store to another.
-- Without a row they are. 'arriving': they are not, until the move is finished. 'moved': they no longer are.
CREATE TABLE moves (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    move_id TEXT NOT NULL,
    state   TEXT NOT NULL CHECK (state IN ('arriving', 'live', 'moved')),
    place   TEXT NOT NULL,                     -- where the rows come from, or went to
    at_ms   INTEGER NOT NULL
) STRICT;

-- A gateway that works on rows that do not count.
CREATE TRIGGER no_worker_where_rows_do_not_count BEFORE INSERT ON workers
    WHEN EXISTS (SELECT 1 FROM moves WHERE state <> 'live')
BEGIN SELECT RAISE(ABORT, 'the rows of this database are elsewhere'); END;

-- Everything that happened, in the order of the commits. Written by triggers, so no verb can forget it.
CREATE TABLE journal (
    seq        INTEGER PRIMARY KEY,
    at_ms      INTEGER NOT NULL,
    subject    TEXT NOT NULL,
    number     INTEGER NOT NULL,
    event      TEXT NOT NULL,
    before     TEXT,
    after      TEXT,
    rule       TEXT,
    reason     TEXT,
    session_id INTEGER,
    turn_id    INTEGER,
    worker_id  INTEGER,
    by_worker  INTEGER                         -- who wrote it, where several nodes do; 0: no worker
) STRICT;

CREATE INDEX journal_by_session ON journal (session_id, seq) WHERE session_id IS NOT NULL;

CREATE TRIGGER journal_never_changes BEFORE UPDATE ON journal
    WHEN NOT (OLD.subject = 'process' AND NEW.reason IS NULL AND NEW.seq = OLD.seq
              AND NEW.at_ms = OLD.at_ms AND NEW.subject = OLD.subject
              AND NEW.number = OLD.number AND NEW.event = OLD.event)
BEGIN SELECT RAISE(ABORT, 'the journal is only appended to'); END;

-- Without strangers, who must not be able to make it grow.
CREATE TRIGGER journal_message AFTER INSERT ON inbox WHEN NEW.reason IS NOT 'not-allowed' BEGIN
    INSERT INTO journal (at_ms, subject, number, event, after, reason, session_id, worker_id)
    VALUES (NEW.received_ms, 'message', NEW.entry_id, 'accepted', NEW.kind, NEW.reason,
            NEW.session_id, NEW.accepted_by);
END;

CREATE TRIGGER journal_message_dropped AFTER UPDATE OF state ON inbox WHEN NEW.state = 'dropped'
BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, reason, session_id)
    VALUES (NEW.changed_ms, 'message', NEW.entry_id, 'dropped', OLD.state, NEW.state,
            NEW.reason, NEW.session_id);
END;

CREATE TRIGGER journal_turn_opened AFTER INSERT ON turns BEGIN
    INSERT INTO journal (at_ms, subject, number, event, after, session_id, turn_id)
    VALUES (NEW.opened_ms, 'turn', NEW.turn_id, NEW.event, NEW.state, NEW.session_id, NEW.turn_id);
END;

CREATE TRIGGER journal_turn_moved AFTER UPDATE OF state ON turns BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, rule, reason, session_id,
                         turn_id, worker_id)
    VALUES (NEW.changed_ms, 'turn', NEW.turn_id, NEW.event, OLD.state, NEW.state, NEW.rule,
            NEW.reason, NEW.session_id, NEW.turn_id, coalesce(NEW.worker_id, OLD.worker_id));
END;

CREATE TRIGGER journal_step AFTER INSERT ON steps WHEN NEW.kind <> 'message' BEGIN
    INSERT INTO journal (at_ms, subject, number, event, reason, session_id, turn_id)
    VALUES (NEW.at_ms, 'step', NEW.seq, NEW.kind, NEW.cause, NEW.session_id, NEW.turn_id);
END;

CREATE TRIGGER journal_call_started AFTER UPDATE OF started_ms ON calls BEGIN
    INSERT INTO journal (at_ms, subject, number, event, reason, session_id, turn_id)
    SELECT NEW.started_ms, 'call', NEW.place, 'started', NEW.call_id || ' ' || NEW.tool,
           session_id, NEW.turn_id FROM turns WHERE turn_id = NEW.turn_id;
END;

-- A held delivery counts as postponed. A release makes no line: an attempt follows.
CREATE TRIGGER journal_delivery AFTER UPDATE OF state ON outbox
    WHEN NEW.state <> 'sending' AND NOT (OLD.state = 'held' AND NEW.state = 'owed')
BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, reason, session_id, turn_id,
                         worker_id)
    VALUES (NEW.changed_ms, 'delivery', NEW.delivery_id,
            CASE WHEN NEW.state IN ('owed', 'held') THEN 'postponed' ELSE NEW.state END, OLD.state,
            NEW.state, NEW.reason, NEW.session_id, NEW.turn_id, OLD.worker_id);
END;

CREATE TRIGGER journal_process_begun AFTER INSERT ON processes BEGIN
    INSERT INTO journal (at_ms, subject, number, event, after, reason, session_id, turn_id)
    VALUES (NEW.started_ms, 'process', NEW.process_id, 'begun', NEW.state, NEW.command,
            NEW.session_id, NEW.turn_id);
END;

CREATE TRIGGER journal_process_ended AFTER UPDATE OF ended_ms ON processes BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, reason, session_id, turn_id)
    VALUES (NEW.ended_ms, 'process', NEW.process_id, 'ended', OLD.state, NEW.state, NEW.reason,
            NEW.session_id, NEW.turn_id);
END;

CREATE TRIGGER journal_cut AFTER UPDATE OF generation ON sessions BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, session_id)
    VALUES (NEW.changed_ms, 'session', NEW.session_id, 'cut', OLD.generation,
            NEW.generation, NEW.session_id);
END;

CREATE TRIGGER journal_person_paired AFTER INSERT ON people BEGIN
    INSERT INTO journal (at_ms, subject, number, event, reason)
    VALUES (NEW.paired_ms, 'person', NEW.entry_id, 'paired', NEW.channel || ' ' || NEW.person);
END;

CREATE TRIGGER journal_person_paired_again AFTER UPDATE OF paired_ms ON people BEGIN
    INSERT INTO journal (at_ms, subject, number, event, reason)
    VALUES (NEW.paired_ms, 'person', NEW.entry_id, 'paired', NEW.channel || ' ' || NEW.person);
END;

CREATE TRIGGER journal_person_revoked AFTER UPDATE OF revoked_ms ON people
    WHEN NEW.revoked_ms IS NOT NULL
BEGIN
    INSERT INTO journal (at_ms, subject, number, event, reason)
    VALUES (NEW.revoked_ms, 'person', NEW.entry_id, 'revoked', NEW.channel || ' ' || NEW.person);
END;

CREATE TRIGGER journal_worker_started AFTER INSERT ON workers BEGIN
    INSERT INTO journal (at_ms, subject, number, event, reason, worker_id)
    VALUES (NEW.started_ms, 'worker', NEW.worker_id, 'started', NEW.version, NEW.worker_id);
END;

CREATE TRIGGER journal_worker_reported AFTER UPDATE OF report ON workers BEGIN
    INSERT INTO journal (at_ms, subject, number, event, reason, worker_id)
    VALUES (NEW.heartbeat_ms, 'worker', NEW.worker_id, 'booted', NEW.report, NEW.worker_id);
END;

CREATE TRIGGER journal_worker_ended AFTER UPDATE OF ended_ms ON workers BEGIN
    INSERT INTO journal (at_ms, subject, number, event, reason, worker_id)
    VALUES (NEW.ended_ms, 'worker', NEW.worker_id, 'ended', NEW.ended_how, NEW.worker_id);
END;

CREATE TRIGGER journal_schedule_made AFTER INSERT ON schedules BEGIN
    INSERT INTO journal (at_ms, subject, number, event, after, session_id)
    VALUES (NEW.created_ms, 'schedule', NEW.schedule_id, 'made', NEW.state, NEW.session_id);
END;

CREATE TRIGGER journal_schedule_moved AFTER UPDATE OF state ON schedules
    WHEN NEW.state <> OLD.state OR NEW.revision <> OLD.revision
BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, reason, session_id)
    VALUES (NEW.changed_ms, 'schedule', NEW.schedule_id,
            CASE WHEN NEW.revision <> OLD.revision THEN 'changed' ELSE NEW.state END, OLD.state,
            NEW.state, NEW.reason, NEW.session_id);
END;

CREATE TRIGGER journal_occasion AFTER INSERT ON occasions BEGIN
    INSERT INTO journal (at_ms, subject, number, event, rule, reason, session_id)
    SELECT NEW.decided_ms, 'schedule', NEW.schedule_id, NEW.verdict, NEW.rule, NEW.due_ms, session_id
    FROM schedules WHERE schedule_id = NEW.schedule_id;
END;

CREATE TRIGGER journal_goal_begun AFTER INSERT ON goals BEGIN
    INSERT INTO journal (at_ms, subject, number, event, after, session_id)
    VALUES (NEW.created_ms, 'goal', NEW.goal_id, 'begun', NEW.state, NEW.session_id);
END;

CREATE TRIGGER journal_goal_moved AFTER UPDATE OF state ON goals WHEN NEW.state <> OLD.state BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, rule, session_id, turn_id)
    VALUES (NEW.changed_ms, 'goal', NEW.goal_id, NEW.state, OLD.state, NEW.state, NEW.rule,
            NEW.session_id, NEW.judged_turn);
END;

CREATE TRIGGER journal_child_made AFTER INSERT ON children BEGIN
    INSERT INTO journal (at_ms, subject, number, event, after, session_id, turn_id)
    VALUES (NEW.made_ms, 'child', NEW.child_id, 'made', NEW.state, NEW.session_id, NEW.turn_id);
END;

CREATE TRIGGER journal_child_moved AFTER UPDATE OF state ON children WHEN NEW.state <> OLD.state BEGIN
    INSERT INTO journal (at_ms, subject, number, event, before, after, reason, session_id, turn_id)
    VALUES (coalesce(NEW.ended_ms, NEW.begun_ms), 'child', NEW.child_id,
            CASE WHEN NEW.state = 'ended' THEN 'ended' ELSE 'begun' END, OLD.state, NEW.state, NEW.how,
            NEW.session_id, NEW.turn_id);
END;

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
