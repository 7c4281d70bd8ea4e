"""Whether a message can be asked again, or dropped, and why not. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.ids import EntryId
from koboshi.domain.inbox import EntryKind, EntryState
from koboshi.domain.people import NOT_ALLOWED, STRANGER_CHARS_MAX
from koboshi.domain.turn import OPEN, TurnState

BY_HAND = "by-hand"
"""The reason of a message that the operator has dropped."""


class Again(StrEnum):
    """Whether a message can be asked again, and why not."""

    UNHEARD = "unheard"  # no turn has heard it: its own words are asked
    UNANSWERED = "unanswered"  # its turn ended without an answer: what was said in that is asked
    ANEW = "anew"  # it was answered, and another answer is wanted
    WAITS = "waits"
    AT_WORK = "at-work"
    ANSWERED = "answered"
    COMMAND = "command"
    REPORT = "report"
    TIMED = "timed"  # a schedule or a goal made it
    CHILD = "child"  # what a child is to do, or how it ended
    PRESSED = "pressed"  # a button of a question that is closed
    NOTHING_KEPT = "nothing-kept"  # it was not for us, and its words were not stored
    CUT_SHORT = "cut-short"  # a stranger's, of which only the beginning is stored
    NO_PLACE = "no-place"  # a stranger's, and its chat is not known
    NOT_SERVED = "not-served"  # its person is not allowed, or its channel is gone
    FULL = "full"  # too much waits in its session


ASKED = frozenset({Again.UNHEARD, Again.UNANSWERED, Again.ANEW})


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFacts:
    """A message, as far as it matters to asking it again."""

    kind: EntryKind
    state: EntryState
    reason: str | None
    text: str
    """What would be asked: its own words, or all that was said in its turn."""
    has_files: bool = False
    is_press: bool = False
    turn: TurnState | None = None
    has_place: bool = True
    """It is known in which chat it was said."""
    is_served: bool = True
    is_full: bool = False
    wants_anew: bool = False
    """Another answer is wanted to what was answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """What became of the wish to ask a message again; `entry_id` is the one that asks it, or has
    asked it before."""

    how: Again
    entry_id: EntryId | None = None
    is_new: bool = False
    """It is asked because of this wish, and not of an earlier one."""


def again_of(facts: EntryFacts) -> Again:
    """Whether a message is asked again now. What would be in vain is refused with its reason."""
    found = _by_fate(facts)
    if found not in ASKED:
        return found
    if not facts.is_served:
        return Again.NOT_SERVED
    return Again.FULL if facts.is_full else found


def _by_fate(facts: EntryFacts) -> Again:
    match facts.kind:
        case EntryKind.COMMAND:
            return Again.COMMAND
        case EntryKind.REPORT:
            return Again.REPORT
        case EntryKind.OCCASION | EntryKind.GOAL:
            return Again.TIMED
        case EntryKind.TASK | EntryKind.CHILD:
            return Again.CHILD
        case EntryKind.IGNORED:
            return _of_stranger(facts) if facts.reason == NOT_ALLOWED else Again.NOTHING_KEPT
        case EntryKind.MESSAGE:
            return _of_message(facts)


def _of_stranger(facts: EntryFacts) -> Again:
    if facts.is_press:
        return Again.PRESSED
    if facts.text.startswith("/"):
        return Again.COMMAND
    if len(facts.text) >= STRANGER_CHARS_MAX:
        return Again.CUT_SHORT
    if not facts.text and not facts.has_files:
        return Again.NOTHING_KEPT
    return Again.UNHEARD if facts.has_place else Again.NO_PLACE


def _of_message(facts: EntryFacts) -> Again:
    is_said = bool(facts.text or facts.has_files)
    match facts.state:
        case EntryState.WAITING:
            return Again.WAITS
        case EntryState.DROPPED if facts.is_press:
            return Again.PRESSED
        case EntryState.DROPPED:
            return Again.UNHEARD
        case _ if facts.turn in OPEN:
            return Again.AT_WORK
        case _ if facts.turn in (TurnState.FAILED, TurnState.STOPPED):
            return Again.UNANSWERED if is_said else Again.REPORT
        case _ if facts.turn is not None and facts.wants_anew:
            return Again.ANEW if is_said else Again.REPORT
        case _:
            return Again.ANSWERED


WHY_NOT = {
    Again.WAITS: "it waits, and its turn comes by itself",
    Again.AT_WORK: "its turn has not ended",
    Again.ANSWERED: "it was answered; what has not arrived is in the outbox",
    Again.COMMAND: "a command is carried out when it arrives; it has to be sent again",
    Again.REPORT: "what a process reports is not asked again",
    Again.TIMED: "a schedule or a goal made it; /cron run and /goal resume do it again",
    Again.CHILD: "it is between an agent and its sub-agent; the agent can be asked again",
    Again.PRESSED: "it pressed a button of a question that is closed",
    Again.NOTHING_KEPT: "it was not for the gateway, and its words were not kept",
    Again.CUT_SHORT: "only its beginning was kept, as of every stranger; they can write it again",
    Again.NO_PLACE: "it is not known in which chat it was said; its sender can write it again",
    Again.NOT_SERVED: "its sender is not allowed, or its channel is not configured",
    Again.FULL: "too many messages wait in its chat; try again later",
}
"""Why a message is not asked again."""


def why_not_dropped(kind: str, state: str, reason: str | None, turn: str | None) -> str:
    """Why a message was not dropped; `turn` names the one that it is in."""
    match (kind, state):
        case (EntryKind.REPORT, EntryState.WAITING):
            return "what a process reports is told to the person who asked for it"
        case (EntryKind.CHILD, EntryState.WAITING):
            return "how a sub-agent ended is told to the agent that it works for"
        case (_, EntryState.ATTACHED):
            return f"it is in {turn}; `koboshi explain {turn}` says where that stands"
        case (EntryKind.COMMAND, _):
            return "a command is carried out when it arrives"
        case (_, EntryState.HANDLED):
            return "the person was told of it when it arrived"
        case _:
            return f"it was {state} before ({reason})"
