"""What SQLite says when it refuses a row."""

from koboshi.stores.sqlite.plain_checks import plain_checks
from tests.harness.agent_constraints import MESSAGES_OF_AGENTS
from tests.harness.timed_constraints import MESSAGES_OF_TIME

MESSAGES = {
    **MESSAGES_OF_TIME,
    **MESSAGES_OF_AGENTS,
    "TRIGGER closed_turns_never_change": "a closed turn never changes",
    "TRIGGER epochs_only_grow": "epochs only grow",
    "TRIGGER steps_never_change": "the transcript is only appended to",
    "TRIGGER settled_deliveries_never_change": "a settled delivery never changes",
    "TRIGGER ended_processes_stay_ended": "a process that has ended stays ended",
    "TRIGGER ended_children_stay_ended": "a child that has ended stays ended",
    "TRIGGER journal_never_changes": "the journal is only appended to",
    "INDEX one_open_turn": "UNIQUE constraint failed: turns.session_id",
    "INDEX one_answer": "UNIQUE constraint failed: steps.turn_id",
    "INDEX one_recovery_note": "UNIQUE constraint failed: steps.turn_id, steps.epoch",
    "INDEX one_rule": "UNIQUE constraint failed: approval_rules.session_id, approval_rules.rule",
    "INDEX one_end_note": "UNIQUE constraint failed: steps.turn_id",
}


def message_of(name: str) -> str:
    """What SQLite says when it refuses."""
    kind, _, rest = name.partition(" ")
    return MESSAGES.get(name, f"{kind} constraint failed: {plain_checks(rest)}")
