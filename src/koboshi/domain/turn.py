"""The life of a turn, as one table.

A turn is one unit of agent work, from what woke it to its answer. Everything that changes where a
turn stands goes through `advance()`; the SQL repeats the condition, so that a bug in either is a
refused write and not a wrong state. The diagram in `docs/state-machines.md` is drawn from
`TRANSITIONS`.
"""

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from koboshi.domain.errors import IllegalTransition
from koboshi.domain.ids import Epoch, Generation, SessionId, TurnId, WorkerId


class TurnState(StrEnum):
    QUEUED = "queued"  # nobody works on it; a worker may claim it
    RUNNING = "running"  # one worker holds the claim
    WAITING = "waiting"  # a person was asked something
    SUSPENDED = "suspended"  # set aside with a reason; a person or a changed world brings it back
    ANSWERED = "answered"  # the answer is stored and owed to the person
    DONE = "done"  # the answer reached the person, or can not
    STOPPED = "stopped"  # ended on purpose
    FAILED = "failed"  # ended by an error, and the person was told


class TurnEvent(StrEnum):
    CLAIMED = "claimed"
    STEPPED = "stepped"
    ASKED = "asked"
    REPLIED = "replied"
    DECLINED = "declined"
    EXPIRED = "expired"
    ANSWERED = "answered"
    SETTLED = "settled"
    RELEASED = "released"
    POSTPONED = "postponed"
    INTERRUPTED = "interrupted"
    ERRED = "erred"
    CUT = "cut"
    DROPPED = "dropped"
    RESUMED = "resumed"
    PROMPTED = "prompted"
    PARKED = "parked"
    CLEARED = "cleared"
    GAVE_UP = "gave-up"


OPEN = frozenset(
    {TurnState.QUEUED, TurnState.RUNNING, TurnState.WAITING, TurnState.SUSPENDED},
)
"""At most one turn of a session is in these."""

CLOSED = frozenset({TurnState.DONE, TurnState.STOPPED, TurnState.FAILED})
"""No way leads out of these."""


def _table() -> dict[tuple[TurnState, TurnEvent], TurnState]:
    state, event = TurnState, TurnEvent
    ways: dict[TurnEvent, dict[TurnState, TurnState]] = {
        event.CLAIMED: {state.QUEUED: state.RUNNING},
        event.STEPPED: {state.RUNNING: state.RUNNING},
        event.ASKED: {state.RUNNING: state.WAITING},
        event.REPLIED: {state.WAITING: state.QUEUED},
        event.DECLINED: {state.WAITING: state.STOPPED},
        event.EXPIRED: {state.WAITING: state.STOPPED},
        event.ANSWERED: {state.RUNNING: state.ANSWERED},
        event.SETTLED: {state.ANSWERED: state.DONE},
        event.RELEASED: {state.RUNNING: state.QUEUED},
        event.POSTPONED: {state.RUNNING: state.QUEUED},
        event.INTERRUPTED: {state.RUNNING: state.STOPPED, state.QUEUED: state.STOPPED},
        event.ERRED: {state.RUNNING: state.FAILED},
        event.CUT: dict.fromkeys(sorted(OPEN), state.STOPPED),
        event.DROPPED: dict.fromkeys(sorted(OPEN), state.STOPPED),
        event.RESUMED: dict.fromkeys(sorted(OPEN), state.QUEUED),
        event.PROMPTED: dict.fromkeys(
            (state.QUEUED, state.RUNNING, state.SUSPENDED), state.WAITING
        ),
        event.PARKED: dict.fromkeys((state.QUEUED, state.RUNNING), state.SUSPENDED),
        event.CLEARED: {
            **dict.fromkeys(sorted(OPEN), state.STOPPED),
            state.ANSWERED: state.DONE,
        },
        event.GAVE_UP: dict.fromkeys((state.QUEUED, state.RUNNING, state.SUSPENDED), state.FAILED),
    }
    return {
        (before, happened): after
        for happened, moves in ways.items()
        for before, after in moves.items()
    }


TRANSITIONS = MappingProxyType(_table())
"""The only definition of what may follow what."""


def advance(state: TurnState, event: TurnEvent) -> TurnState:
    """The state that follows `state` at `event`. Raises IllegalTransition if there is none."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(f"a {state} turn can not be {event}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to write to one turn. No claim, no write; a newer epoch makes it worthless."""

    turn_id: TurnId
    session_id: SessionId
    generation: Generation
    epoch: Epoch
    worker_id: WorkerId
    is_recovered: bool = False
    """Whether it goes on with what was interrupted."""
