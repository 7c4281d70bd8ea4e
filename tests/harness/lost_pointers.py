"""Rows that point to rows that do not exist. Every store refuses them."""

from tests.harness.agent_constraints import AGENTS_POINTING_NOWHERE
from tests.harness.forbidden_rows import INBOX, OUTBOX, PAIRING, PROCESS, RULE, STEP
from tests.harness.memory_constraints import MEMORY_POINTING_NOWHERE
from tests.harness.timed_constraints import CHILDREN_POINTING_NOWHERE, TIME_POINTING_NOWHERE

POINTING_NOWHERE = {
    **TIME_POINTING_NOWHERE,
    **CHILDREN_POINTING_NOWHERE,
    **AGENTS_POINTING_NOWHERE,
    **MEMORY_POINTING_NOWHERE,
    "turns.session_id": "UPDATE turns SET session_id = 99 WHERE turn_id = 2",
    "turns.worker_id": "UPDATE turns SET worker_id = 99 WHERE turn_id = 2",
    "accounts.connected_by": (
        "INSERT INTO accounts (channel, account, bound_ms, connected_by) VALUES ('a', '1', 1, 99)"
    ),
    "accounts.owner": (
        "INSERT INTO accounts (channel, account, bound_ms, owner) VALUES ('a', '1', 1, 99)"
    ),
    "pairings.session_id": f"{PAIRING} ('a', 'b', '', 99, 1, 1, 2)",
    "inbox.session_id": f"{INBOX} 'message', 'waiting', 99, 1, NULL, NULL)",
    "inbox.turn_id": f"{INBOX} 'message', 'attached', 1, 1, 99, NULL)",
    "inbox.accepted_by": "UPDATE inbox SET accepted_by = 99",
    "steps.session_id": f"{STEP} (99, 2, 1, '{{}}', 1, 'note', 'x')",
    "steps.turn_id": f"{STEP} (1, 99, 1, '{{}}', 1, 'note', 'x')",
    "calls.turn_id": "UPDATE calls SET turn_id = 99",
    "outbox.session_id": f"{OUTBOX} (99, 'x', 1, 1, '', '', 'owed', 1, 1, NULL, NULL, NULL)",
    "outbox.turn_id": "UPDATE outbox SET turn_id = 99 WHERE settled_ms IS NULL",
    "outbox.worker_id": f"{OUTBOX} (1, 'x', 1, 1, '', '', 'sending', 1, 1, 99, NULL, NULL)",
    "outbox.tried_by": "UPDATE outbox SET tried_by = 99 WHERE settled_ms IS NULL",
    "undelivered.notice_id": "INSERT INTO undelivered VALUES (99, 1)",
    "undelivered.delivery_id": "INSERT INTO undelivered VALUES (1, 99)",
    "approval_rules.session_id": f"{RULE} (99, 'k', NULL, NULL))",
    "processes.session_id": f"{PROCESS} '1.0', 1, 'running', NULL); "
    "UPDATE processes SET session_id = 99",
    "processes.turn_id": f"{PROCESS} '1.0', 1, 'running', NULL); UPDATE processes SET turn_id = 99",
    "watchers.process_id": "INSERT INTO watchers (process_id, kind, argument, state) "
    "VALUES (99, 'exit', '', 'armed')",
}
