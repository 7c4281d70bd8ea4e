"""States that cannot be stored: every CHECK, UNIQUE, primary key, guarding trigger and reference of
the kernel's schema, with a statement that would write what it makes impossible."""

from koboshi.domain.transcript import Effect, Need
from tests.harness.agent_constraints import REFUSED_BY_AGENTS
from tests.harness.homes import Home, a_call
from tests.harness.memory_constraints import REFUSED_BY_MEMORY
from tests.harness.model_constraints import REFUSED_BY_MODELS
from tests.harness.node_constraints import REFUSED_BY_NODES
from tests.harness.timed_constraints import REFUSED_BY_CHILDREN, REFUSED_BY_TIME

OUTBOX = (
    "INSERT INTO outbox (session_id, cause, part, parts, text, anchor, state, created_ms, "
    "changed_ms, worker_id, settled_ms, reason) VALUES "
)
INBOX = (
    "INSERT INTO inbox (source, external_id, sender, body, received_ms, changed_ms, kind, state, "
    "session_id, generation, turn_id, reason) VALUES ('web:main', 'new', 'ann', '{}', 1, 1, "
)
STEP = "INSERT INTO steps (session_id, turn_id, epoch, body, at_ms, kind, cause) VALUES "
CALL = (
    "INSERT INTO calls (turn_id, tool, arguments, provider_id, args_hash, place, call_id, effect, "
    "need, started_ms, finished_ms, skipped_ms, approved_by, approved_ms) "
    "VALUES (2, 't', '{}', '', '', 1, "
)
RULE = (
    "INSERT INTO approval_rules (tool, shown, made_by, made_ms, session_id, rule_key, revoked_by, "
    "revoked_ms) SELECT 'terminal', 'ls', 'ann', 1, * FROM (VALUES"
)
BROWSER = (
    "INSERT INTO browsers "
    "(browser_id, cookie_hash, proof_hash, label, made_ms, used_ms, expires_ms) VALUES "
)
ACCOUNT = "INSERT INTO accounts (channel, account, bound_ms) VALUES "
PAIRING = (
    "INSERT INTO pairings (channel, person, name, session_id, entry_id, offered_ms, expires_ms) "
    "VALUES "
)
PROCESS = (
    "INSERT INTO processes (session_id, generation, turn_id, command, workdir, started_ms, "
    "call_id, foreground, state, ended_ms) VALUES (1, 1, 2, 'ls', '.', 1, "
)

REFUSED: dict[str, list[tuple[str, str]]] = {
    **REFUSED_BY_TIME,
    **REFUSED_BY_CHILDREN,
    **REFUSED_BY_NODES,
    **REFUSED_BY_AGENTS,
    **REFUSED_BY_MEMORY,
    **REFUSED_BY_MODELS,
    "workers": [
        ("CHECK draining IN (0, 1)", "UPDATE workers SET draining = 2"),
        (
            "CHECK ended_how IN "
            "('stopped', 'leftovers', 'restart', 'killed', 'memory', 'rebooted', 'refused')",
            "UPDATE workers SET ended_how = 'bored', ended_ms = 1",
        ),
        (
            "CHECK (ended_ms IS NULL) = (ended_how IS NULL)",
            "UPDATE workers SET ended_ms = 1, ended_how = NULL",
        ),
        (
            "CHECK (ended_ms IS NULL) = (ended_how IS NULL)",
            "UPDATE workers SET ended_ms = NULL, ended_how = 'killed'",
        ),
    ],
    "people": [
        (
            "UNIQUE people.channel, people.person",
            "INSERT INTO people (channel, person, name, entry_id, paired_ms) "
            "VALUES ('a', 'b', '', 1, 1), ('a', 'b', '', 2, 2)",
        ),
        (
            "CHECK role IN ('member', 'owner')",
            "INSERT INTO people (channel, person, name, entry_id, paired_ms, role) "
            "VALUES ('a', 'b', '', 1, 1, 'king')",
        ),
    ],
    "pairings": [
        (
            "UNIQUE pairings.channel, pairings.person",
            f"{PAIRING} ('a', 'b', '', 1, 1, 1, 2), ('a', 'b', '', 1, 2, 1, 2)",
        ),
        ("CHECK expires_ms >= offered_ms", f"{PAIRING} ('a', 'b', '', 1, 1, 2, 1)"),
    ],
    "browsers": [
        ("CHECK expires_ms > made_ms", f"{BROWSER} (1, 'c', 'p', '', 1, 1, 1)"),
    ],
    "accounts": [
        ("UNIQUE accounts.channel", f"{ACCOUNT} ('a', '1', 1), ('a', '2', 1)"),
        ("CHECK account <> ''", f"{ACCOUNT} ('a', '', 1)"),
    ],
    "cursors": [
        (
            "UNIQUE cursors.channel, cursors.account",
            "INSERT INTO cursors VALUES ('a', 'b', '1'), ('a', 'b', '2')",
        )
    ],
    "watermarks": [
        (
            "UNIQUE watermarks.channel, watermarks.account, watermarks.chat",
            "INSERT INTO watermarks VALUES ('a', 'b', 'c', '1'), ('a', 'b', 'c', '2')",
        )
    ],
    "search_place": [("CHECK one = 1", "INSERT INTO search_place VALUES (2, 0)")],
    "send_ids": [
        ("CHECK one = 1", "INSERT INTO send_ids VALUES (2, '0123456789')"),
        (
            "CHECK length(random) BETWEEN 8 AND 10",
            "INSERT INTO send_ids VALUES (1, '01234567890')",
        ),
    ],
    "approval_rules": [
        ("INDEX one_rule", f"{RULE} (1, 'k', NULL, NULL), (1, 'k', NULL, NULL))"),
        (
            "CHECK (revoked_by IS NULL) = (revoked_ms IS NULL)",
            f"{RULE} (1, 'k', 'ann', NULL))",
        ),
    ],
    "quiet": [
        (
            "UNIQUE quiet.channel, quiet.chat",
            "INSERT INTO quiet VALUES ('a', 'b', 1, 1), ('a', 'b', 2, 1)",
        )
    ],
    "undelivered": [
        (
            "UNIQUE undelivered.notice_id, undelivered.delivery_id",
            "INSERT INTO undelivered VALUES (1, 1), (1, 1)",
        )
    ],
    "sessions": [
        (
            "UNIQUE sessions.channel, sessions.chat, sessions.thread, sessions.aside",
            "UPDATE sessions SET chat = 'ann'",
        ),
    ],
    "turns": [
        (
            "CHECK state IN ('queued', 'running', 'waiting', 'suspended', 'answered', 'done', "
            "'stopped', 'failed')",
            "UPDATE turns SET state = 'lost', worker_id = NULL WHERE turn_id = 2",
        ),
        (
            "CHECK (state = 'running') = (worker_id IS NOT NULL)",
            "UPDATE turns SET worker_id = NULL WHERE turn_id = 2",
        ),
        (
            "CHECK (state = 'running') = (worker_id IS NOT NULL)",
            "UPDATE turns SET state = 'queued' WHERE turn_id = 2",
        ),
        (
            "CHECK (state IN ('done', 'stopped', 'failed')) = (closed_ms IS NOT NULL)",
            "UPDATE turns SET closed_ms = 1 WHERE turn_id = 2",
        ),
        (
            "CHECK (state IN ('done', 'stopped', 'failed')) = (closed_ms IS NOT NULL)",
            "UPDATE turns SET state = 'done', worker_id = NULL WHERE turn_id = 2",
        ),
        (
            "CHECK (state = 'waiting') = (question_seq IS NOT NULL)",
            "UPDATE turns SET question_seq = NULL WHERE turn_id = 3",
        ),
        (
            "CHECK (state = 'waiting') = (question_seq IS NOT NULL)",
            "UPDATE turns SET question_seq = 1 WHERE turn_id = 2",
        ),
        (
            "CHECK (state = 'waiting') = (expires_ms IS NOT NULL)",
            "UPDATE turns SET expires_ms = NULL WHERE turn_id = 3",
        ),
        (
            "CHECK (state = 'waiting') = (expires_ms IS NOT NULL)",
            "UPDATE turns SET expires_ms = 1 WHERE turn_id = 2",
        ),
        (
            "CHECK epoch >= 0 AND recoveries >= 0 AND crash_streak >= 0",
            "UPDATE turns SET recoveries = -1 WHERE turn_id = 2",
        ),
        (
            "CHECK epoch >= 0 AND recoveries >= 0 AND crash_streak >= 0",
            "UPDATE turns SET crash_streak = -1 WHERE turn_id = 2",
        ),
        (
            "INDEX one_open_turn",
            "INSERT INTO turns (session_id, generation, state, event, person, anchor, first_seq, "
            "opened_ms, progressed_ms, changed_ms) "
            "VALUES (1, 1, 'queued', 'opened', 'ann', '', 1, 1, 1, 1)",
        ),
        (
            "TRIGGER closed_turns_never_change",
            "UPDATE turns SET state = 'queued', closed_ms = NULL WHERE turn_id = 1",
        ),
        ("TRIGGER closed_turns_never_change", "UPDATE turns SET reason = '?' WHERE turn_id = 1"),
        ("TRIGGER epochs_only_grow", "UPDATE turns SET epoch = epoch - 1 WHERE turn_id = 2"),
        ("TRIGGER epochs_only_grow", "UPDATE turns SET epoch = epoch WHERE turn_id = 2"),
    ],
    "inbox": [
        (
            "CHECK kind IN ('message', 'command', 'report', 'ignored', 'occasion', 'goal', 'task', "
            "'child')",
            f"{INBOX} 'rumour', 'waiting', 1, 1, NULL, NULL)",
        ),
        (
            "CHECK state IN ('waiting', 'attached', 'handled', 'dropped', 'ignored')",
            f"{INBOX} 'message', 'lost', 1, 1, NULL, NULL)",
        ),
        (
            "UNIQUE inbox.source, inbox.account, inbox.external_id",
            "UPDATE inbox SET external_id = 'key-1'",
        ),
        (
            "CHECK (state = 'attached') = (turn_id IS NOT NULL)",
            f"{INBOX} 'message', 'attached', 1, 1, NULL, NULL)",
        ),
        (
            "CHECK (state = 'attached') = (turn_id IS NOT NULL)",
            f"{INBOX} 'message', 'waiting', 1, 1, 2, NULL)",
        ),
        (
            "CHECK (state IN ('dropped', 'ignored')) = (reason IS NOT NULL)",
            f"{INBOX} 'message', 'dropped', 1, 1, NULL, NULL)",
        ),
        (
            "CHECK (state IN ('dropped', 'ignored')) = (reason IS NOT NULL)",
            f"{INBOX} 'message', 'waiting', 1, 1, NULL, 'why')",
        ),
        (
            "CHECK kind = 'ignored' OR (session_id IS NOT NULL AND generation IS NOT NULL)",
            f"{INBOX} 'message', 'waiting', NULL, 1, NULL, NULL)",
        ),
        (
            "CHECK kind = 'ignored' OR (session_id IS NOT NULL AND generation IS NOT NULL)",
            f"{INBOX} 'report', 'waiting', 1, NULL, NULL, NULL)",
        ),
        (
            "CHECK (kind = 'ignored') = (state = 'ignored')",
            f"{INBOX} 'ignored', 'waiting', NULL, NULL, NULL, NULL)",
        ),
        (
            "CHECK (kind = 'ignored') = (state = 'ignored')",
            f"{INBOX} 'message', 'ignored', 1, 1, NULL, 'why')",
        ),
    ],
    "steps": [
        (
            "CHECK kind IN ('message', 'note', 'reply', 'result', 'question', 'answer', 'summary')",
            f"{STEP} (1, 2, 1, '{{}}', 1, 'thought', '')",
        ),
        ("INDEX one_answer", f"{STEP} (1, 1, 1, '{{}}', 1, 'answer', 'model')"),
        (
            "INDEX one_recovery_note",
            f"{STEP} (1, 2, 7, '{{}}', 1, 'note', 'recovery'), "
            "(1, 2, 7, '{}', 1, 'note', 'recovery')",
        ),
        (
            "INDEX one_end_note",
            f"{STEP} (1, 2, 7, '{{}}', 1, 'note', 'ended'), (1, 2, 8, '{{}}', 1, 'note', 'ended')",
        ),
        ("TRIGGER steps_never_change", "UPDATE steps SET body = '{}' WHERE seq = 1"),
    ],
    "calls": [
        (
            "CHECK effect IN ('none', 'repeatable', 'resumable', 'once')",
            f"{CALL} 'x', 'maybe', 'nobody', NULL, NULL, NULL, NULL, NULL)",
        ),
        (
            "CHECK need IN ('nobody', 'answer', 'approval')",
            f"{CALL} 'x', 'none', 'luck', NULL, NULL, NULL, NULL, NULL)",
        ),
        (
            "CHECK outcome IN ('ok', 'error', 'unknown', 'stopped')",
            "UPDATE calls SET outcome = 'fine'",
        ),
        (
            "UNIQUE calls.turn_id, calls.call_id",
            "INSERT INTO calls SELECT * FROM calls WHERE turn_id = 2",
        ),
        (
            "CHECK finished_ms IS NULL OR started_ms IS NOT NULL",
            f"{CALL} 'x', 'none', 'nobody', NULL, 1, NULL, NULL, NULL)",
        ),
        (
            "CHECK skipped_ms IS NULL OR started_ms IS NULL",
            f"{CALL} 'x', 'none', 'nobody', 1, NULL, 1, NULL, NULL)",
        ),
        (
            "CHECK (approved_by IS NULL) = (approved_ms IS NULL)",
            f"{CALL} 'x', 'none', 'approval', NULL, NULL, NULL, 'ann', NULL)",
        ),
        (
            "CHECK (approved_by IS NULL) = (approved_ms IS NULL)",
            f"{CALL} 'x', 'none', 'approval', NULL, NULL, NULL, NULL, 1)",
        ),
        (
            "CHECK started_ms IS NULL OR need <> 'approval' OR approved_ms IS NOT NULL",
            "UPDATE calls SET started_ms = 1 WHERE need = 'approval'",
        ),
    ],
    "outbox": [
        (
            "CHECK state IN ('draft', 'owed', 'sending', 'held', 'delivered', 'rejected', "
            "'abandoned')",
            f"{OUTBOX} (1, 'x', 1, 1, '', '', 'lost', 1, 1, NULL, NULL, NULL)",
        ),
        ("CHECK ambiguous IN (0, 1)", "UPDATE outbox SET ambiguous = 2 WHERE settled_ms IS NULL"),
        ("CHECK labelled IN (0, 1)", "UPDATE outbox SET labelled = 2 WHERE settled_ms IS NULL"),
        (
            "UNIQUE outbox.session_id, outbox.cause, outbox.part",
            f"{OUTBOX} (1, 'x', 1, 1, '', '', 'owed', 1, 1, NULL, NULL, NULL), "
            "(1, 'x', 1, 1, '', '', 'owed', 1, 1, NULL, NULL, NULL)",
        ),
        (
            "CHECK (state = 'sending') = (worker_id IS NOT NULL)",
            f"{OUTBOX} (1, 'x', 1, 1, '', '', 'sending', 1, 1, NULL, NULL, NULL)",
        ),
        (
            "CHECK (state = 'sending') = (worker_id IS NOT NULL)",
            f"{OUTBOX} (1, 'x', 1, 1, '', '', 'owed', 1, 1, 1, NULL, NULL)",
        ),
        (
            "CHECK (state IN ('delivered', 'rejected', 'abandoned')) = (settled_ms IS NOT NULL)",
            f"{OUTBOX} (1, 'x', 1, 1, '', '', 'delivered', 1, 1, NULL, NULL, NULL)",
        ),
        (
            "CHECK (state IN ('delivered', 'rejected', 'abandoned')) = (settled_ms IS NOT NULL)",
            f"{OUTBOX} (1, 'x', 1, 1, '', '', 'owed', 1, 1, NULL, 1, NULL)",
        ),
        (
            "CHECK state NOT IN ('rejected', 'abandoned') OR reason IS NOT NULL",
            f"{OUTBOX} (1, 'x', 1, 1, '', '', 'abandoned', 1, 1, NULL, 1, NULL)",
        ),
        (
            "CHECK state <> 'held' OR not_before_ms = 0",
            f"{OUTBOX} (1, 'x', 1, 1, '', '', 'held', 1, 1, NULL, NULL, NULL); "
            "UPDATE outbox SET not_before_ms = 1 WHERE state = 'held'",
        ),
        (
            "CHECK part BETWEEN 1 AND parts",
            f"{OUTBOX} (1, 'x', 3, 2, '', '', 'owed', 1, 1, NULL, NULL, NULL)",
        ),
        (
            "TRIGGER settled_deliveries_never_change",
            "UPDATE outbox SET state = 'owed', settled_ms = NULL WHERE settled_ms IS NOT NULL",
        ),
    ],
    "processes": [
        (
            "CHECK boundary IN ('bubblewrap', 'landlock', 'none')",
            f"{PROCESS} '1.0', 1, 'running', NULL); UPDATE processes SET boundary = 'wall'",
        ),
        ("CHECK foreground IN (0, 1)", f"{PROCESS} '1.0', 2, 'running', NULL)"),
        (
            "CHECK state IN ('starting', 'running', 'exited', 'killed', 'lost')",
            f"{PROCESS} '1.0', 1, 'gone', NULL)",
        ),
        (
            "UNIQUE processes.turn_id, processes.call_id",
            f"{PROCESS} '1.0', 1, 'running', NULL), "
            "(1, 1, 2, 'ls', '.', 1, '1.0', 1, 'running', NULL)",
        ),
        (
            "CHECK (state IN ('exited', 'killed', 'lost')) = (ended_ms IS NOT NULL)",
            f"{PROCESS} '1.0', 1, 'exited', NULL)",
        ),
        (
            "CHECK (state IN ('exited', 'killed', 'lost')) = (ended_ms IS NOT NULL)",
            f"{PROCESS} '1.0', 1, 'running', 1)",
        ),
        (
            "TRIGGER ended_processes_stay_ended",
            f"{PROCESS} '1.0', 1, 'exited', 1); "
            "UPDATE processes SET state = 'running', ended_ms = NULL",
        ),
    ],
    "journal": [
        ("TRIGGER journal_never_changes", "UPDATE journal SET reason = 'no' WHERE seq = 1")
    ],
}


async def with_turns(home: Home) -> Home:
    """Turn 1 is done, turn 2 runs with two proposed calls, turn 3 waits for its question."""
    await home.answer(await home.work_on("one"))
    await home.deliver()
    claim = await home.work_on("two")
    gated = a_call("rm", effect=Effect.ONCE, need=Need.APPROVAL)
    await home.propose(claim, a_call(), gated)
    await home.ask(await home.work_on("three", chat="bob"))
    return home
