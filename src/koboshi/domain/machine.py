"""What the eight state machines have in common: a table, and one door.

Turn, entry, delivery, process, watcher, schedule, goal and child each have a state that is stored,
an enum of states, an enum of events, and one table that says which event leads from where to where.
What is not in the table cannot happen: `advance()` raises, and the caller changes nothing. The
kernel asks before each statement that sets a state (`kernel/moves.py`), and the statement repeats
the states that it moves from, so that a bug in either is a refused write and not a wrong state. The
diagrams in `docs/state-machines.md` are drawn from the tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, TypeVar

from koboshi.domain.errors import IllegalTransition

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(Generic[State, Event]):
    name: str
    begins: frozenset[State]
    """The states in which a new row may be stored."""
    transitions: Mapping[tuple[State, Event], State]
    """The only definition of what may follow what."""

    def advance(self, state: State, event: Event) -> State:
        """The state that follows `state` at `event`. Raises IllegalTransition if there is none."""
        try:
            return self.transitions[state, event]
        except KeyError:
            words = f"the {self.name} is {state}: {event} is no way out of that"
            raise IllegalTransition(words) from None

    def origins(self, event: Event) -> frozenset[State]:
        """The states in which `event` may happen."""
        return frozenset(before for before, happened in self.transitions if happened == event)


def transitions_of(
    ways: Mapping[Event, Mapping[State, State]],
) -> Mapping[tuple[State, Event], State]:
    """The table of a machine, from where each event leads."""
    return MappingProxyType(
        {(before, event): after for event, moves in ways.items() for before, after in moves.items()}
    )
