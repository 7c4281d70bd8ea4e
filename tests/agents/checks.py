"""What must be true of foreign agents after any deaths, and how much of it is tried."""

from collections.abc import Sequence
from typing import TypeVar

from tests.agents.agency import Agency
from tests.harness.tally import WANTS_ALL

Each = TypeVar("Each")
RULES = {"agent-died", "agent-away", "never-begun", "not-received", "not-prompted", "memory-gone"}


def portion(few: Sequence[Each], whole: Sequence[Each]) -> Sequence[Each]:
    """All of them in the campaign, a few always."""
    return whole if WANTS_ALL else few


def check(agency: Agency, answers: int) -> None:
    """No prompt reached one process twice, each repeat names its rule, each answer came once."""
    assert agency.is_right(), agency.log
    assert len(agency.answers()) == answers
    prompts = agency.rows(
        "SELECT process_id, turn_id, count(*) FROM agent_messages WHERE kind = 'prompt' "
        "GROUP BY process_id, turn_id"
    )
    assert all(count == 1 for *_, count in prompts)
    repeats = agency.rows(
        "SELECT m.rule FROM agent_messages AS m WHERE m.kind = 'prompt' AND EXISTS "
        "(SELECT 1 FROM agent_messages AS e WHERE e.kind = 'prompt' AND e.turn_id = m.turn_id "
        "AND e.process_id < m.process_id)"
    )
    assert {rule for (rule,) in repeats} <= RULES
    assert agency.rows("SELECT count(*) FROM turns WHERE state NOT IN ('done')") == [(0,)]
