"""What is answered to the requests of `control/requests.py`. The description of the page's API is
made of these, and the command line reads them.

A field that has UNSET as its default may be absent; every other one is always there. A default is
for a gateway of an earlier version, which does not tell it.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from koboshi.domain.process import Process
from koboshi.domain.reasons import Reason, Trouble
from koboshi.domain.recovery import Verdict
from koboshi.domain.route import Route
from koboshi.domain.rule import ApprovalRule
from koboshi.domain.watch import Watcher
from koboshi.domain.worker import Worker
from koboshi.ports.backups import BackupStanding
from koboshi.ports.children import Relative
from koboshi.ports.nodes import NodeView
from koboshi.ports.server import ServerStanding
from koboshi.ports.views import (
    AgentWords,
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
    ok: bool = True


class RefusedWhy(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    """For programs."""
    message: str
    """For people."""


class Refusal(Done, frozen=True, kw_only=True):
    """The answer that there is none."""

    ok: bool = False
    error: RefusedWhy


def refusal(kind: str, message: str) -> Refusal:
    return Refusal(error=RefusedWhy(type=kind, message=message))


def encoded(reply: Done) -> dict[str, object]:
    """The answer as an object of JSON."""
    built: dict[str, object] = msgspec.to_builtins(reply)
    return built


# ── the gateway ─────────────────────────────────────────────────────────────────────────────────


class NeighbourStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    ok: bool
    reason: str


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a foreign agent that lives."""

    agent: str
    process: str
    session: str
    turn: str | None
    """What it works on; None: it has nothing to do."""
    used_ms: int
    """When a turn last had to do with it."""
    memory_bytes: int | None
    """With all that it started; None where the system does not tell."""


class AgentList(Done, frozen=True, kw_only=True):
    agents: tuple[AgentStatus, ...]


class StatusReply(Done, frozen=True, kw_only=True):
    is_running: bool
    trouble: str | None
    """Why nothing can be written."""
    worker: Worker | None
    previous: Worker | None
    turns: dict[str, int]
    stands: dict[str, int] = {}
    inbox_waiting: int
    outbox_unsettled: int
    sessions: int
    sqlite: str = ""
    breaker: str = "closed"
    outbox_held: int = 0
    gap: str | None = None
    turns_unheard: int = 0
    unreached: dict[str, str] = {}
    """Channels that cannot be reached, and why."""
    heard: dict[str, str] = {}
    """When each platform was last heard, and how far we are behind."""
    neighbours: tuple[NeighbourStatus, ...] = ()
    """The model and the MCP servers."""
    restart: str | None = None
    """Why the gateway wants to be restarted."""
    server: ServerStanding | None = None
    """How the database server is; None where the store is a file."""
    nodes: tuple[NodeView, ...] = ()
    """All gateways that work on the database, where there may be several."""
    agents: tuple[AgentStatus, ...] = ()
    """The foreign agents that live in this home."""


class HeldCount(Done, frozen=True, kw_only=True):
    held: int
    ambiguous: int


class LoginLink(Done, frozen=True, kw_only=True):
    link: str


class WebAddress(Done, frozen=True, kw_only=True):
    address: str | None


class GatewayEnding(Done, frozen=True, kw_only=True):
    """The gateway was asked to end."""

    pid: int
    running_turns: int


class BackupReply(Done, frozen=True, kw_only=True):
    backup: BackupStanding


class Troubles(Done, frozen=True, kw_only=True):
    troubles: tuple[Trouble, ...]
    questions: int = 0
    """How many turns wait for a person."""


# ── rows ────────────────────────────────────────────────────────────────────────────────────────


class SessionList(Done, frozen=True, kw_only=True):
    sessions: tuple[SessionView, ...]
    next: str | None
    """`before` of the next page."""


class TurnList(Done, frozen=True, kw_only=True):
    turns: tuple[TurnView, ...]
    next: str | None


class MessageList(Done, frozen=True, kw_only=True):
    messages: tuple[EntryView, ...]
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


class Released(Done, frozen=True, kw_only=True):
    released: int
    delivery: DeliveryView | UnsetType | None = UNSET
    """The one that was named."""


class TurnShown(Done, frozen=True, kw_only=True):
    turn: TurnView
    messages: tuple[EntryView, ...]
    calls: tuple[CallView, ...]
    deliveries: tuple[DeliveryView, ...]


class TraceReply(Done, frozen=True, kw_only=True):
    """The way of a message: what arrived, its turn, what that did, and what was said for it."""

    message: EntryView
    turn: TurnView | None
    calls: tuple[CallView, ...]
    deliveries: tuple[DeliveryView, ...]
    lines: tuple[JournalLine, ...]


# ── explanations ────────────────────────────────────────────────────────────────────────────────


class Explained(Done, frozen=True, kw_only=True):
    """What all explanations have in common. `kind` says which one it is."""

    kind: str
    is_running: bool
    """Whether a gateway runs."""
    reason: Reason | UnsetType = UNSET


class TurnStory(Explained, frozen=True, kw_only=True):
    turn: TurnView
    facts: dict[str, Any] | None
    """What recovery looks at; it grows with recovery."""
    why: Verdict | None
    lines: tuple[JournalLine, ...]
    entries: tuple[EntryView, ...]
    deliveries: tuple[DeliveryView, ...]
    question: str | None
    held_up: Reason | None = None
    barred: tuple[str, ...] = ()
    family: tuple[Relative, ...] = ()
    """The turn at the root, and all sub-agents below it."""
    memory: str = ""
    """Which memory it was shown."""
    is_worked_on: bool
    agent: tuple[AgentWords, ...] = ()


class TurnExplained(TurnStory, frozen=True, kw_only=True):
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


# ── approvals ───────────────────────────────────────────────────────────────────────────────────


class RuleList(Done, frozen=True, kw_only=True):
    rules: tuple[ApprovalRule, ...]


class RuleRevoked(Done, frozen=True, kw_only=True):
    rule: ApprovalRule


# ── people ──────────────────────────────────────────────────────────────────────────────────────


class BrowserRow(msgspec.Struct, frozen=True, kw_only=True):
    browser: str
    label: str
    """What it says of itself; it proves nothing."""
    made_ms: int
    used_ms: int
    """Give or take an hour."""
    expires_ms: int


class BrowserList(Done, frozen=True, kw_only=True):
    browsers: tuple[BrowserRow, ...]


class BrowserRevoked(Done, frozen=True, kw_only=True):
    browser: str
    count: int


class MessageTaken(Done, frozen=True, kw_only=True):
    """A message is on disk."""

    message: str
    state: str
    duplicate: bool
