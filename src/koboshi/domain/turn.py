"""The life of a turn, as one table.

A turn is one unit of agent work, from what woke it to its answer. Everything that changes where a
turn stands goes through `advance()`, as `machine.py` says.
"""

from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.ids import Epoch, Generation, SessionId, TurnId, WorkerId
from koboshi.domain.machine import Machine, transitions_of


class TurnState(StrEnum):
    QUEUED = "queued"  # no worker holds it; one may claim it
    RUNNING = "running"  # one worker holds the claim
    WAITING = "waiting"  # a person was asked something
    SUSPENDED = "suspended"  # set aside with a reason; a person or a changed world brings it back
    ANSWERED = "answered"  # the answer is stored and owed to the person
    DONE = "done"  # the answer reached the person, or cannot
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
    SILENCED = "silenced"


OPEN = frozenset(
    {TurnState.QUEUED, TurnState.RUNNING, TurnState.WAITING, TurnState.SUSPENDED},
)
"""At most one turn of a session is in these."""

CLOSED = frozenset({TurnState.DONE, TurnState.STOPPED, TurnState.FAILED})
"""No way leads out of these."""


TRANSITIONS = transitions_of(
    {
        TurnEvent.CLAIMED: {TurnState.QUEUED: TurnState.RUNNING},
        TurnEvent.STEPPED: {TurnState.RUNNING: TurnState.RUNNING},
        TurnEvent.ASKED: {TurnState.RUNNING: TurnState.WAITING},
        TurnEvent.REPLIED: {TurnState.WAITING: TurnState.QUEUED},
        TurnEvent.DECLINED: {TurnState.WAITING: TurnState.STOPPED},
        TurnEvent.EXPIRED: {TurnState.WAITING: TurnState.STOPPED},
        TurnEvent.ANSWERED: {TurnState.RUNNING: TurnState.ANSWERED},
        TurnEvent.SETTLED: {TurnState.ANSWERED: TurnState.DONE},
        TurnEvent.RELEASED: {TurnState.RUNNING: TurnState.QUEUED},
        TurnEvent.POSTPONED: {TurnState.RUNNING: TurnState.QUEUED},
        TurnEvent.INTERRUPTED: {
            TurnState.RUNNING: TurnState.STOPPED,
            TurnState.QUEUED: TurnState.STOPPED,
        },
        TurnEvent.ERRED: {TurnState.RUNNING: TurnState.FAILED},
        TurnEvent.CUT: dict.fromkeys(sorted(OPEN), TurnState.STOPPED),
        TurnEvent.DROPPED: dict.fromkeys(sorted(OPEN), TurnState.STOPPED),
        TurnEvent.RESUMED: dict.fromkeys(sorted(OPEN), TurnState.QUEUED),
        TurnEvent.PROMPTED: dict.fromkeys(sorted(OPEN - {TurnState.WAITING}), TurnState.WAITING),
        TurnEvent.PARKED: dict.fromkeys((TurnState.QUEUED, TurnState.RUNNING), TurnState.SUSPENDED),
        TurnEvent.CLEARED: {
            **dict.fromkeys(sorted(OPEN), TurnState.STOPPED),
            TurnState.ANSWERED: TurnState.DONE,
        },
        TurnEvent.GAVE_UP: dict.fromkeys(sorted(OPEN - {TurnState.WAITING}), TurnState.FAILED),
        # There was nothing to report: the answer is stored, and no person is told.
        TurnEvent.SILENCED: {TurnState.ANSWERED: TurnState.DONE},
    }
)

MACHINE = Machine(name="turn", begins=frozenset({TurnState.QUEUED}), transitions=TRANSITIONS)
advance = MACHINE.advance


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
