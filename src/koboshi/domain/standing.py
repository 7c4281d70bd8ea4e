"""Where a turn stands and why, in the one set of words that the chat, the command line and the page
use. Pure.

It is here and not in `control/`, because the kernel needs it in transactions: `/status` and `/why`
are answered in the one that stores the command, and every list is read in one.
"""

from dataclasses import replace

from koboshi.domain.reasons import Reason
from koboshi.domain.recovery import Verdict, VerdictKind
from koboshi.domain.turn import TurnEvent, TurnState

WORKED_ON = "this gateway is working on it"

HELD_BACK = "boot-breaker"
"""The rule that leaves an interrupted turn alone while the gateway keeps dying."""

HELD = "held-back"
INTERRUPTED = "interrupted"
"""Two ways to stand that no state tells: the turn looks like one that gets on, and does not."""

_WORDS: dict[str, str] = {
    TurnState.QUEUED: "in the queue",
    TurnState.RUNNING: "being worked on",
    HELD: "held back: the gateway keeps dying",
    INTERRUPTED: "interrupted: the gateway died over it",
    TurnState.WAITING: "waiting for an answer",
    TurnState.SUSPENDED: "set aside",
    TurnState.ANSWERED: "answered, and the answer is on its way",
}
STANDS = tuple(_WORDS)
"""Every way to stand of a turn that is not closed."""

_MESSAGE_WORDS = {
    "waiting": "waiting for its turn",
    "handled": "taken care of",
}


def stand_of(state: TurnState, verdict: Verdict | None, *, is_worked_on: bool) -> str:
    """One of STANDS, or the state of a closed turn. `verdict` is what recovery would decide now,
    None for a turn that it does not concern; `is_worked_on` says that the gateway that runs now
    holds the claim."""
    is_alive = state in (TurnState.QUEUED, TurnState.RUNNING)
    is_left = verdict is not None and verdict.rule == HELD_BACK
    if is_alive and is_left and not is_worked_on:
        return HELD
    if state is TurnState.RUNNING and not is_worked_on:
        return INTERRUPTED
    return str(state)


def stand_words(stand: str) -> str:
    """What people are told."""
    return _WORDS.get(stand, stand)


def where_it_stands(state: TurnState, verdict: Verdict | None, *, is_worked_on: bool) -> str:
    """Both at once: where the turn stands, in words."""
    return stand_words(stand_of(state, verdict, is_worked_on=is_worked_on))


def where_message_stands(state: str, turn: str | None) -> str:
    """Where a message stands: in a turn, as `turn` says; else as its own state does."""
    return turn if turn is not None else _MESSAGE_WORDS.get(state, state)


def why_now(
    state: TurnState,
    event: str,
    verdict: Verdict | None,
    held_up: Reason | None,
    *,
    is_running: bool,
    is_worked_on: bool,
) -> Verdict | None:
    """Why a turn that is not closed stands where it does; None if it is closed. `held_up` is what
    keeps it from getting on in a gateway that runs.

    The verdict is what recovery would decide now. It speaks of an interruption, which is the truth
    only for a turn that had one.
    """
    if verdict is None:
        return None
    if held_up is not None:
        return Verdict(kind=VerdictKind.STAND, rule="held-up", because=held_up.words)
    if is_worked_on:
        return Verdict(kind=VerdictKind.STAND, rule="worked-on", because=WORKED_ON)
    if state is not TurnState.QUEUED or verdict.kind is not VerdictKind.RESUME:
        return verdict
    when = "as soon as there is room" if is_running else "when a gateway runs again"
    match event:
        case "opened":
            return replace(verdict, because=f"it has not been worked on yet; it begins {when}")
        case TurnEvent.REPLIED:
            return replace(verdict, because=f"the person has answered; it goes on {when}")
        case TurnEvent.RELEASED:
            because = f"it was set down because the gateway was stopping; it goes on {when}"
            return replace(verdict, because=because)
        case TurnEvent.POSTPONED:
            because = "the model could not answer yet; it is asked again when the wait is over"
            return replace(verdict, because=because)
        case _:
            return verdict
