"""A child: a session that works on a part of what a turn has to do, and reports to it. Pure.

A turn gives work away and goes on. The child has a context of its own; the conversation hears of it
once, by one entry of the inbox, when it has ended, in whatever way. It is at work until nothing of
it is open: no turn, and no child of its own.
"""

from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.durations import duration
from koboshi.domain.ids import CallId, ChildId, Generation, SessionId, TurnId, shown
from koboshi.domain.machine import Machine, transitions_of
from koboshi.domain.marks import MARK
from koboshi.domain.phrases import excerpt
from koboshi.domain.turn import TurnEvent, TurnState

NAME_CHARS_MAX = 60
TASK_CHARS_MAX = 20_000
ANSWER_CHARS_MAX = 30_000
"""So much of its answer its parent is shown; the whole of it stays in its transcript."""


class ChildState(StrEnum):
    WAITING = "waiting"  # for another one of its parent to end
    WORKING = "working"
    ENDED = "ended"


class ChildEvent(StrEnum):
    BEGUN = "begun"
    ENDED = "ended"


TRANSITIONS = transitions_of(
    {
        ChildEvent.BEGUN: {ChildState.WAITING: ChildState.WORKING},
        ChildEvent.ENDED: {
            ChildState.WAITING: ChildState.ENDED,
            ChildState.WORKING: ChildState.ENDED,
        },
    }
)

MACHINE = Machine(name="child", begins=frozenset({ChildState.WAITING}), transitions=TRANSITIONS)
advance = MACHINE.advance


class ChildEnd(StrEnum):
    """How a child ended."""

    ANSWERED = "answered"
    FAILED = "failed"
    STOPPED = "stopped"  # by the person, with what gave it the work
    EXPIRED = "expired"  # a question of it was not answered in time
    INTERRUPTED = "interrupted"  # it was not to go on, or a person did not want it to
    NOT_ALLOWED = "not-allowed"  # its person lost the right to use the gateway
    ERASED = "erased"


_WORDS = {
    ChildEnd.ANSWERED: "has answered",
    ChildEnd.FAILED: "has failed",
    ChildEnd.STOPPED: "was stopped",
    ChildEnd.EXPIRED: "ended, because its question to the person was not answered",
    ChildEnd.INTERRUPTED: "was ended before it was done",
    ChildEnd.NOT_ALLOWED: "was ended, because its person may not use the gateway any more",
    ChildEnd.ERASED: "was ended, because what it worked on was erased",
}


UNHEARD = {ChildEnd.NOT_ALLOWED: "child-not-allowed", ChildEnd.ERASED: "child-erased"}
"""Ends that wake no parent, and why what would be told of them is dropped. `not-allowed` alone is
the reason of strangers' messages, which are deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    at_once: int = 4
    """Children of one parent that work at the same time; others wait."""
    open_max: int = 16
    """Those that work or wait; a further one is refused."""
    made_max: int = 40
    """Children of one conversation since a person, a schedule or a goal last woke it."""
    depth_max: int = 2
    """A child of a conversation has depth 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildTask:
    """What a child is to do."""

    name: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    child_id: ChildId
    session_id: SessionId
    """Its parent's."""
    generation: Generation
    """Of its parent, when it was made."""
    turn_id: TurnId
    call_id: CallId
    """The call that made it."""
    person: str
    name: str
    task: str
    depth: int
    state: ChildState
    own_session: SessionId | None
    """Where it works; None before it has begun."""
    how: ChildEnd | None
    made_ms: int
    begun_ms: int | None
    ended_ms: int | None

    @property
    def shown(self) -> str:
        return shown("child", self.child_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildCounts:
    """What a parent has of children when it asks for one more."""

    depth: int
    """Of the parent: 0 for a conversation."""
    open_now: int
    made: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegated:
    """What became of a wish for a child: the child, or why there is none."""

    child: Child | None = None
    refusal: str = ""


def why_no_child(counts: ChildCounts, limits: ChildLimits) -> str | None:
    """Why a parent gets no further child, in words for the model; None if it gets one."""
    if counts.depth >= limits.depth_max:
        return "a sub-agent this deep has none of its own; do the work yourself"
    if counts.open_now >= limits.open_max:
        return (
            f"{counts.open_now} sub-agents work or wait for this conversation already, and there "
            "are no more; go on when some of them have ended, or do the work yourself"
        )
    if counts.made >= limits.made_max:
        return (
            f"{counts.made} sub-agents were made since a person last wrote; tell the person how "
            "far you are, and ask whether to go on"
        )
    return None


def end_of(state: str, event: str) -> ChildEnd:
    """How a child ended whose last turn ended like this."""
    if state in (TurnState.ANSWERED, TurnState.DONE):
        return ChildEnd.ANSWERED
    if event == TurnEvent.EXPIRED:
        return ChildEnd.EXPIRED
    if event == TurnEvent.CUT:
        return ChildEnd.STOPPED
    return ChildEnd.FAILED if state == TurnState.FAILED else ChildEnd.INTERRUPTED


def headline(child: Child, how: ChildEnd, now_ms: int) -> str:
    """The first line of what its parent hears."""
    since_ms = child.made_ms if child.begun_ms is None else child.begun_ms
    took = f" after {duration(max(0, now_ms - since_ms))}" if child.begun_ms is not None else ""
    return f"Sub-agent {child.shown} ({excerpt(child.name, NAME_CHARS_MAX)}) {_WORDS[how]}{took}:"


def bounded(answer: str) -> str:
    """What its parent is shown of an answer."""
    if len(answer) <= ANSWER_CHARS_MAX:
        return answer
    left_out = len(answer) - ANSWER_CHARS_MAX
    return f"{answer[:ANSWER_CHARS_MAX]}\n… {left_out} more characters left out"


def first_note(child: Child) -> str:
    """What a child is told before its task."""
    return (
        f"{MARK} You are sub-agent {child.shown}. Another agent gave you the task below, and works "
        "on by itself. You do not see its conversation, and no person reads your answer: it goes "
        "to that agent. Do the task, then answer with all that it needs to know, in a form that it "
        "can use as it is. Ask a person only for what you cannot decide. What you leave running "
        "in the background is ended when you answer."
    )


def glance(child: Child, now_ms: int, *, is_asking: bool = False) -> str:
    """One of those that have not ended, for a person."""
    name = f"{child.shown} «{excerpt(child.name, NAME_CHARS_MAX)}»"
    if child.state is ChildState.WAITING:
        return f"{name} (waits for another one to end)"
    since = duration(max(0, now_ms - (child.begun_ms or child.made_ms)))
    return f"{name} (for {since}{', waits for an answer' if is_asking else ''})"


def standing(child: Child) -> str:
    """What a child is about, and where it stands, for an operator."""
    how = child.state if child.how is None else f"{child.state}: {_WORDS[child.how]}"
    return f"«{excerpt(child.name, NAME_CHARS_MAX)}» {how}"
