"""What people and programs may look at. Reading never waits for writing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from koboshi.domain.files import OutFile
from koboshi.domain.ids import (
    ChannelName,
    ChildId,
    DeliveryId,
    EntryId,
    GoalId,
    ProcessId,
    ScheduleId,
    SessionId,
    TurnId,
    WorkerId,
)
from koboshi.domain.memory import MemoryId
from koboshi.domain.process import Process
from koboshi.domain.reasons import Reason
from koboshi.domain.recovery import TurnFacts, Verdict
from koboshi.domain.route import Route
from koboshi.domain.session import Settings
from koboshi.domain.transcript import Body, Choice, Past
from koboshi.domain.watch import Watcher
from koboshi.domain.worker import Worker
from koboshi.ports.chats import ChatView as ChatView
from koboshi.ports.children import Relative
from koboshi.ports.memory import MemoryStory
from koboshi.ports.minutes import MinuteView as MinuteView
from koboshi.ports.nodes import Status as Status
from koboshi.ports.schedules import GoalView, ScheduleView
from koboshi.ports.step_views import AgentWords as AgentWords
from koboshi.ports.step_views import CallView as CallView
from koboshi.ports.step_views import StepView as StepView
from koboshi.ports.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLine:
    """One event, in the order of its commit."""

    seq: int
    at_ms: int
    subject: str
    """What it happened to: turn, step, call, message, delivery, process, session, person,
    worker."""
    number: int
    event: str
    before: str | None
    after: str | None
    rule: str | None
    reason: str | None
    session_id: SessionId | None
    turn_id: TurnId | None
    worker_id: int | None
    words: str = ""
    """What happened, by the narrator; empty where another line says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The delivered message of an event."""

    delivery_id: DeliveryId
    cause: str
    part: int
    parts: int
    text: str
    choices: tuple[Choice, ...]
    question: int | None
    may_be_duplicate: bool
    file: OutFile | None = None
    literal: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A journal line with its subject, for readers that follow a chat."""

    line: JournalLine
    route: Route
    body: Body | None = None
    took_ms: int | None = None
    """Of the result of a call that ran: how long."""
    delivery: Shown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    turn_id: TurnId
    session_id: SessionId
    route: Route
    state: str
    event: str
    reason: str | None
    epoch: int
    recoveries: int
    crash_streak: int
    request: str
    opened_ms: int
    changed_ms: int
    closed_ms: int | None
    worker_id: int | None
    stand: str = ""
    """Where it stands: its state, `held-back` or `interrupted`."""
    stands: str = ""
    """The same, in words used everywhere."""
    due_ms: int | None = None
    """When it is taken up again; None if it does not wait for a time."""
    aside: str = ""
    """The schedule or the child that it works for, beside the conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView:
    entry_id: EntryId
    session_id: SessionId | None
    turn_id: TurnId | None
    kind: str
    state: str
    reason: str | None
    source: str
    external_id: str
    sender: str
    text: str
    received_ms: int
    stands: str = ""
    """Where it stands, in words: those of the turn that it is in, or its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryView:
    delivery_id: DeliveryId
    session_id: SessionId
    turn_id: TurnId | None
    cause: str
    part: int
    parts: int
    state: str
    reason: str | None
    attempts: int
    platform_id: str | None
    text: str
    created_ms: int
    settled_ms: int | None
    due_ms: int | None = None
    """When it is tried next; None if it does not wait for a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A turn's story, and what recovery would decide now. `why` is None when it is closed."""

    turn: TurnView
    facts: TurnFacts | None
    why: Verdict | None
    lines: tuple[JournalLine, ...]
    entries: tuple[EntryView, ...]
    deliveries: tuple[DeliveryView, ...]
    question: str | None = None
    """What it waits for."""
    held_up: Reason | None = None
    """What blocks it, in a running gateway."""
    barred: tuple[str, ...] = ()
    """The ids of the people in it who may not use the gateway."""
    family: tuple[Relative, ...] = ()
    """The turn at the root, and all children below it; empty where there are none."""
    memory: str = ""
    """Which memory it was shown, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A session at a glance. `settings` are its own; None means: as the configuration says."""

    session_id: SessionId
    route: Route
    generation: int
    settings: Settings
    open_turn: TurnView | None
    waiting: int
    owed: int
    created_ms: int
    changed_ms: int
    aside: str = ""
    """The schedule or the child that works there beside the conversation; empty: it is that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The path of a message: its arrival, its turn, the turn's steps, and the deliveries for it."""

    message: EntryView
    turn: TurnView | None
    calls: tuple[CallView, ...]
    deliveries: tuple[DeliveryView, ...]
    lines: tuple[JournalLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which rows to read: the newest before one, all of them or only the open ones."""

    limit: int
    before: int
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """A process, its session, and its watchers."""

    process: Process
    route: Route
    watchers: tuple[Watcher, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionView:
    """A question that a person has to answer for a turn to go on."""

    turn: TurnView
    question: int
    author: str
    is_approval: bool
    text: str
    choices: tuple[Choice, ...]
    asked_ms: int
    expires_ms: int
    literal: tuple[int, ...] | None = None
    """Which characters of the text will run or be written, exactly."""
    asked_by: str = ""
    """For whom the agent works."""


class Views(Protocol):
    async def status(self) -> Status: ...

    async def turns_of(self, session_id: SessionId, limit: int) -> tuple[TurnView, ...]:
        """The session's turns, newest first."""
        ...

    async def session_of(self, route: Route) -> SessionId | None: ...

    async def entry(self, entry_id: EntryId) -> EntryView | None: ...

    async def entry_by_external_id(self, external_id: str) -> EntryView | None: ...

    async def delivery(self, delivery_id: DeliveryId) -> DeliveryView | None: ...

    async def sent_file(
        self, channel: ChannelName, chat: str, delivery_id: DeliveryId
    ) -> OutFile | None:
        """The file that a delivery brought to the chat; None if it brought none there."""
        ...

    async def explain(self, turn_id: TurnId) -> Explanation | None: ...

    async def processes(self, limit: int) -> tuple[ProcessView, ...]:
        """Background processes of all sessions: the running ones, then the newest that ended."""
        ...

    async def process(self, process_id: ProcessId) -> ProcessView | None: ...

    async def reports_of(self, process_id: ProcessId) -> tuple[EntryView, ...]:
        """What was said about a process, oldest first."""
        ...

    async def events(
        self, channel: ChannelName, chat: str, *, after: int, limit: int
    ) -> Sequence[Event]:
        """What happened in a chat after the journal line `after`, oldest first."""
        ...

    async def past(self, channel: ChannelName, chat: str, *, after: int, limit: int) -> Past | None:
        """The newest words of a chat whose journal lines were deleted; None if none behind the
        line `after` were."""
        ...

    async def chats_touched(
        self, channel: ChannelName, *, after: int
    ) -> tuple[int, frozenset[str]]:
        """The newest journal line of all, and the chats of the channel with events after the line
        `after`."""
        ...

    async def place_before(self, channel: ChannelName, chat: str, *, lines: int) -> int:
        """The journal line after which the chat's newest `lines` lines come; 0 if it has fewer."""
        ...

    async def last_event(self, channel: ChannelName, chat: str) -> int:
        """The newest journal line of a chat; 0 if there is none."""
        ...


class OwnerViews(Views, Protocol):
    """The owner's views, beside those that a channel needs. Lists are newest first."""

    async def tally(self, worker_id: WorkerId, after: int | None) -> Tally:
        """Counts behind the line `after`; None means since that boot began."""
        ...

    async def trace(self, entry_id: EntryId) -> Trace | None: ...

    async def schedule(self, schedule_id: ScheduleId, occasions: int) -> ScheduleView | None: ...

    async def child_turn(self, child_id: ChildId) -> TurnId | None: ...

    async def goal(self, goal_id: GoalId) -> GoalView | None: ...

    async def memory(self, memory_id: MemoryId) -> MemoryStory | None: ...

    async def calls_of(self, turn_id: TurnId) -> tuple[CallView, ...]: ...

    async def sessions(self, page: Page) -> tuple[SessionView, ...]: ...

    async def session(self, session_id: SessionId) -> SessionView | None: ...

    async def turns(self, page: Page) -> tuple[TurnView, ...]: ...

    async def entries(self, page: Page) -> tuple[EntryView, ...]: ...

    async def deliveries(self, page: Page) -> tuple[DeliveryView, ...]: ...

    async def workers(self, page: Page) -> tuple[Worker, ...]: ...

    async def journal(self, page: Page) -> tuple[JournalLine, ...]:
        """Events of all sessions. With `is_open` only recovery decisions and the begins and ends of
        boots, as far back as a quick read reaches."""
        ...

    async def turns_named(self, turn_ids: Sequence[TurnId]) -> tuple[TurnView, ...]:
        """These turns, as far as they exist."""
        ...

    async def turns_before(
        self, session_id: SessionId, *, before: int, limit: int
    ) -> tuple[TurnView, ...]:
        """The session's turns before one of them."""
        ...

    async def sessions_named(self, chat: str, limit: int) -> tuple[SessionView, ...]:
        """Sessions of all channels whose chat begins with these letters, by name."""
        ...

    async def chats(self, channel: ChannelName, limit: int) -> tuple[ChatView, ...]:
        """Chats of the channel with recent events."""
        ...

    async def questions(self, limit: int) -> tuple[QuestionView, ...]:
        """What turns wait for, the longest first."""
        ...

    async def steps_of(self, turn_id: TurnId, limit: int) -> tuple[StepView, ...]:
        """What was said and done in a turn, oldest first; the newest ones if there are many."""
        ...

    async def agent_words(self, turn_id: TurnId, limit: int) -> tuple[AgentWords, ...]:
        """What a foreign agent told in a turn beside its steps, oldest first; the newest if there
        is much."""
        ...

    async def minutes(self, since_ms: int) -> tuple[MinuteView, ...]:
        """What the minutes from that moment on were like, oldest first."""
        ...

    async def now_ms(self) -> int:
        """The moment of a look."""
        ...
