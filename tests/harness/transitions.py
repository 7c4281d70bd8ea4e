"""Which ways through the life of a turn a test run has taken.

A suite hands over what it saw, as (before, event, after) in the words of the journal, and learns
which transitions no one has taken yet.
"""

from collections.abc import Iterable
from typing import TypeAlias

from koboshi.domain.turn import TRANSITIONS, TurnEvent, TurnState

Transition: TypeAlias = tuple[TurnState, TurnEvent, TurnState]

ALL: frozenset[Transition] = frozenset(
    (before, event, after) for (before, event), after in TRANSITIONS.items()
)


def missing_transitions(
    seen: Iterable[tuple[str | None, str, str | None]],
) -> tuple[Transition, ...]:
    """The transitions that are not among `seen`, sorted.

    Rows that are no transition of a turn (its opening, a delivery, a command) count for nothing,
    so that a whole journal can be passed.
    """
    return tuple(sorted(ALL.difference(seen)))
