"""Where a turn stands, in the one set of words that the chat, the command line and the page use.
Pure."""

from koboshi.domain.recovery import Verdict
from koboshi.domain.turn import TurnState

HELD_BACK = "boot-breaker"
"""The rule that leaves an interrupted turn alone while the gateway dies again and again."""

_WORDS = {
    TurnState.QUEUED: "in the queue",
    TurnState.RUNNING: "being worked on",
    TurnState.WAITING: "waiting for an answer",
    TurnState.SUSPENDED: "set aside",
    TurnState.ANSWERED: "answered, and the answer is on its way",
}


def is_held_back(state: TurnState, verdict: Verdict | None, *, is_worked_on: bool) -> bool:
    """Whether the turn looks like one that gets on, and recovery has decided to leave it alone."""
    is_alive = state in (TurnState.QUEUED, TurnState.RUNNING)
    is_left = verdict is not None and verdict.rule == HELD_BACK
    return is_alive and is_left and not is_worked_on


def where_it_stands(state: TurnState, verdict: Verdict | None, *, is_worked_on: bool) -> str:
    """`verdict` is what recovery would decide now, None for a turn that it does not concern;
    `is_worked_on` says that the gateway that runs now holds the claim."""
    if is_held_back(state, verdict, is_worked_on=is_worked_on):
        return "held back: the gateway dies again and again"
    if state is TurnState.RUNNING and not is_worked_on:
        return "interrupted: the gateway died over it"
    return _WORDS.get(state, state)
