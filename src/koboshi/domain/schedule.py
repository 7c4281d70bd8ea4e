"""What a person asks for once and the gateway does later: a schedule, and its life as one table.

A *schedule* is the standing order, an *occasion* is one due time of it. An occasion that fires is
an entry of the inbox like a message, so admission, recovery and delivery hold for it as they are.
"""

from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.ids import ScheduleId, SessionId, shown
from koboshi.domain.machine import Machine, transitions_of

NAME_CHARS_MAX = 80
PROMPT_CHARS_MAX = 8_000
PLAIN_CHARS_MAX = 1_000
"""Longer words are no reminder but a task, and would not fit into one message everywhere."""


class ScheduleKind(StrEnum):
    AT = "at"  # once, at a moment
    EVERY = "every"  # again and again, a span apart
    CRON = "cron"  # at local times, as five fields say


class WorkPlace(StrEnum):
    """Where an occasion is worked on."""

    HERE = "here"  # in the conversation in which it was made
    THREAD = "thread"  # in a thread of its own; where none can be made: here
    FRESH = "fresh"  # in the same chat, beside the conversation, with a context of its own


class Late(StrEnum):
    """What is done with an occasion that is later than it may be."""

    RUN = "run"
    ASK = "ask"
    SKIP = "skip"


class Overlap(StrEnum):
    """What is done while the previous occasion is still open."""

    SKIP = "skip"
    QUEUE = "queue"


class ScheduleState(StrEnum):
    ARMED = "armed"  # it has a due time
    PAUSED = "paused"  # by a person, or because its person lost the right
    SPENT = "spent"  # its only time has come
    DISABLED = "disabled"  # it failed too often in a row
    REMOVED = "removed"  # kept for its occasions, and because its number is part of their keys


class ScheduleEvent(StrEnum):
    FIRED = "fired"
    ENDED = "ended"
    PAUSED = "paused"
    RESUMED = "resumed"
    CHANGED = "changed"
    TRIED_AGAIN = "tried-again"
    DISABLED = "disabled"
    REMOVED = "removed"


_KEPT = (
    ScheduleState.ARMED,
    ScheduleState.PAUSED,
    ScheduleState.SPENT,
    ScheduleState.DISABLED,
)

TRANSITIONS = transitions_of(
    {
        ScheduleEvent.FIRED: {ScheduleState.ARMED: ScheduleState.ARMED},
        ScheduleEvent.ENDED: {ScheduleState.ARMED: ScheduleState.SPENT},
        ScheduleEvent.PAUSED: {ScheduleState.ARMED: ScheduleState.PAUSED},
        ScheduleEvent.RESUMED: {
            ScheduleState.PAUSED: ScheduleState.ARMED,
            ScheduleState.DISABLED: ScheduleState.ARMED,
        },
        # A changed order is in force, whatever became of the old one.
        ScheduleEvent.CHANGED: dict.fromkeys(_KEPT, ScheduleState.ARMED),
        ScheduleEvent.TRIED_AGAIN: {
            ScheduleState.ARMED: ScheduleState.ARMED,
            ScheduleState.SPENT: ScheduleState.ARMED,
        },
        ScheduleEvent.DISABLED: {
            ScheduleState.ARMED: ScheduleState.DISABLED,
            ScheduleState.SPENT: ScheduleState.DISABLED,
        },
        ScheduleEvent.REMOVED: dict.fromkeys(_KEPT, ScheduleState.REMOVED),
    }
)

MACHINE = Machine(name="schedule", begins=frozenset({ScheduleState.ARMED}), transitions=TRANSITIONS)
advance = MACHINE.advance


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be done, and when. Either `prompt` or `command` says what."""

    name: str
    kind: ScheduleKind
    expression: str
    """A moment for `at`, seconds for `every`, five fields for `cron`."""
    zone: str
    prompt: str = ""
    command: str = ""
    place: WorkPlace = WorkPlace.HERE
    late: Late = Late.SKIP
    late_ms: int | None = None
    """How late it may be carried out; None: as its kind says."""
    overlap: Overlap = Overlap.SKIP
    quiet: bool = False
    """The model may say that there is nothing to report, and then no person is told."""
    is_plain: bool = False
    """The words are told as they are, at their time, and no model is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    schedule_id: ScheduleId
    session_id: SessionId
    person: str
    order: Order
    state: ScheduleState
    reason: str | None
    revision: int
    """How often the order was changed; an occasion of an earlier one is dropped."""
    due_ms: int | None
    """When it is looked at next; None unless it is armed."""
    again_of: int | None
    """The due time that is tried again at `due_ms`, if it is not a new one."""
    tries: int
    failures: int
    """Occasions that failed in a row."""
    alerted_ms: int | None
    created_by: str
    created_ms: int
    own_session: SessionId | None = None
    """Where it works, if not in the conversation in which it was made."""
    thread_why: str | None = None
    """Why it has no thread of its own, and works in the conversation."""

    @property
    def shown(self) -> str:
        return shown("schedule", self.schedule_id)

    @property
    def source(self) -> str:
        return source_of(self.schedule_id)


def source_of(schedule_id: ScheduleId) -> str:
    """The source of the entries of its occasions."""
    return f"schedule:{schedule_id}"


def default_late(kind: ScheduleKind) -> Late:
    """A reminder is never lost in silence; of what comes again the next time will do."""
    return Late.ASK if kind is ScheduleKind.AT else Late.SKIP


class OccasionVerdict(StrEnum):
    """What became of an occasion."""

    FIRED = "fired"
    LATE = "late"  # carried out, and the model is told how late it is
    MISSED = "missed"
    SKIPPED = "skipped"
    ASKED = "asked"
    DROPPED = "dropped"  # it had fired, and its entry was taken away before a turn had it


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    schedule_id: ScheduleId
    due_ms: int
    revision: int
    verdict: OccasionVerdict
    rule: str
    count: int
    """How many due times the row stands for."""
    decided_ms: int
    entry_id: int | None = None
    turn_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """What an entry that time made carries beside its words."""

    name: str
    """That of the schedule, or the text of the goal."""
    due_ms: int = 0
    late_ms: int = 0
    """How late it was when it fired; 0 if that need not be said."""
    zone: str = "UTC"
    ask: str = ""
    """The question that its turn begins with; empty if it just begins."""
    yes: str = ""
    no: str = ""
    """What the two answers are called."""
    command: str = ""
    is_fresh: bool = False
    is_quiet: bool = False
    is_plain: bool = False
    revision: int = 0
    note: str = ""
    """What the model is told before the words."""
