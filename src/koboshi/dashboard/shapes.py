"""What the routes behind the page answer, for the description of the API.

Nothing is made of these: the answers are put together where they are asked for, and the tests hold
them to this. A field that has UNSET as its default may be absent; every other one is always there.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from koboshi.domain.process import Process
from koboshi.domain.reasons import Reason
from koboshi.domain.recovery import Verdict
from koboshi.domain.route import Route
from koboshi.domain.watch import Watcher
from koboshi.domain.worker import Worker
from koboshi.ports.views import (
    CallView,
    ChatView,
    DeliveryView,
    EntryView,
    JournalLine,
    ProcessView,
    QuestionView,
    SessionView,
    StepView,
    TurnView,
)


class Done(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool


class SessionList(Done, frozen=True, kw_only=True):
    sessions: tuple[SessionView, ...]
    next: str | None
    """`before` of the next page."""


class TurnList(Done, frozen=True, kw_only=True):
    turns: tuple[TurnView, ...]
    next: str | None


class InboxEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A message, its turn, and what became of it if that is over."""

    entry_id: int
    session_id: int | None
    turn_id: int | None
    kind: str
    state: str
    reason: str | None
    source: str
    external_id: str
    sender: str
    text: str
    received_ms: int
    stands: str
    turn: TurnView | None
    fate: Reason | None


class InboxList(Done, frozen=True, kw_only=True):
    messages: tuple[InboxEntry, ...]
    next: str | None


class DeliveryList(Done, frozen=True, kw_only=True):
    deliveries: tuple[DeliveryView, ...]
    next: str | None


class WorkerList(Done, frozen=True, kw_only=True):
    workers: tuple[Worker, ...]
    next: str | None


class LineList(Done, frozen=True, kw_only=True):
    lines: tuple[JournalLine, ...]
    next: str | None


class ProcessList(Done, frozen=True, kw_only=True):
    processes: tuple[ProcessView, ...]


class QuestionList(Done, frozen=True, kw_only=True):
    questions: tuple[QuestionView, ...]


class ChatList(Done, frozen=True, kw_only=True):
    chats: tuple[ChatView, ...]


class SessionShown(Done, frozen=True, kw_only=True):
    session: SessionView
    turns: tuple[TurnView, ...]


class MessageShown(Done, frozen=True, kw_only=True):
    message: EntryView


class DeliveryShown(Done, frozen=True, kw_only=True):
    delivery: DeliveryView


class TurnShown(Done, frozen=True, kw_only=True):
    turn: TurnView
    messages: tuple[EntryView, ...]
    calls: tuple[CallView, ...]
    deliveries: tuple[DeliveryView, ...]


class Explained(Done, frozen=True, kw_only=True):
    """What all explanations have in common. `kind` says which one it is."""

    kind: str
    is_running: bool
    """Whether a gateway runs."""
    reason: Reason | UnsetType = UNSET


class TurnExplained(Explained, frozen=True, kw_only=True):
    turn: TurnView
    facts: dict[str, Any] | None
    """What recovery looks at; it grows with recovery."""
    why: Verdict | None
    lines: tuple[JournalLine, ...]
    entries: tuple[EntryView, ...]
    deliveries: tuple[DeliveryView, ...]
    question: str | None
    is_worked_on: bool
    steps: tuple[StepView, ...]
    calls: tuple[CallView, ...]


class MessageExplained(Explained, frozen=True, kw_only=True):
    message: EntryView
    behind: TurnView | None


class DeliveryExplained(Explained, frozen=True, kw_only=True):
    delivery: DeliveryView
    turn: TurnView | None
    behind: DeliveryView | None
    lines: tuple[JournalLine, ...]


class ProcessExplained(Explained, frozen=True, kw_only=True):
    process: Process
    route: Route
    watchers: tuple[Watcher, ...]
    reports: tuple[EntryView, ...]


class ProcessOutput(Done, frozen=True, kw_only=True):
    process: Process
    route: Route
    watchers: tuple[Watcher, ...]
    output: str


class ProcessEnded(Done, frozen=True, kw_only=True):
    was_ended: bool
    process: Process
    route: Route
    watchers: tuple[Watcher, ...]


class Troubles(Done, frozen=True, kw_only=True):
    troubles: tuple[Reason, ...]


class PageOffer(Done, frozen=True, kw_only=True):
    channel: str
    version: str
    model: str
    can_kill: bool
    rules: dict[str, str]
