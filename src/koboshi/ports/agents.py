"""Foreign agents: what the store knows of them, and what works with them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from koboshi.domain.agent import AgentMessage, AgentRequest, AgentStanding, MessageKind
from koboshi.domain.agent_talk import Heard
from koboshi.domain.ids import CallId, ProcessId, SessionId, TurnId
from koboshi.domain.process import Process
from koboshi.domain.role import RoleStanding
from koboshi.domain.sandbox import Boundary
from koboshi.domain.transcript import Note, Result
from koboshi.domain.turn import Claim
from koboshi.ports.runners import CommandSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingAgent:
    """A process of an agent that may live, or has said more than is stored."""

    process_id: ProcessId
    session_id: SessionId
    agent: str
    used_ms: int
    is_session_open: bool
    """The chat still has this conversation with the agent."""
    is_end_asked: bool
    busy_with: TurnId | None
    """The turn of the prompt that has no answer."""
    is_abandoned: bool
    """That turn is over."""
    cancelled_ms: int | None
    """When the agent was told to stop working on it."""
    has_open_turn: bool
    """A turn is open in the chat."""
    is_ready: bool
    """It has answered what it has to answer before it is given a prompt."""
    read_offset: int
    is_starting: bool
    """It may have no runner yet. To look at it would settle that it never begins; only its turn may
    do that, and what follows when that is over."""


class Agents(Protocol):
    """Each verb is one transaction. Those with a claim raise Fenced without it."""

    async def standing(self, claim: Claim, agent: str) -> AgentStanding: ...

    async def is_prompted(self, turn_id: TurnId) -> str | None:
        """The agent that was prompted for a turn; None if none was."""
        ...

    async def begin(
        self,
        claim: Claim,
        agent: str,
        greeting: str,
        *,
        command: str,
        workdir: str,
        boundary: Boundary,
    ) -> Process:
        """Store the intent to start a process of the agent, and the first message to it."""
        ...

    async def say(
        self,
        claim: Claim,
        process_id: ProcessId,
        kind: MessageKind,
        body: str,
        *,
        rule: str | None = None,
        note: Note | None = None,
        told: str = "",
    ) -> None:
        """Store a message to the agent. A prompt is stored once for a turn and a process; `note`
        and `told` go with it, into the transcript and to the person."""
        ...

    async def bodies(
        self, process_id: ProcessId, number_from: int
    ) -> tuple[tuple[int, MessageKind, str], ...]:
        """The messages to a process from a number on, as they are fed."""
        ...

    async def take(
        self,
        process_id: ProcessId,
        before: int,
        after: int,
        heard: Sequence[Heard],
        claim: Claim | None = None,
        *,
        is_alive: bool = True,
    ) -> int | None:
        """Apply what lies between two places of the spool, and store the second. Returns the place
        that is stored: before the second if more requests come than may wait, for an agent that
        lives. None, and nothing is applied, if the stored place is not the first any more, or the
        turn is another's, or there is no room for the first request."""
        ...

    async def drained(self, process_id: ProcessId, *, begun: bool, is_away: bool = False) -> None:
        """The agent has ended, and all that it wrote is stored. `begun` says whether a byte of its
        open prompt was fed. One that is away is given up instead: what it still says is not heard,
        and it is ended when its node is back."""
        ...

    async def reply(
        self, request: AgentRequest, body: str, note: str, result: Result | None = None
    ) -> None:
        """Answer a request of the agent, once. `result` ends the call that asked a person."""
        ...

    async def propose(
        self, claim: Claim, request: AgentRequest, tool: str, arguments: str
    ) -> CallId:
        """Make a call of a permission that a person is to be asked for."""
        ...

    async def ask(self, claim: Claim, prompt: AgentMessage, words: str, age_ms_max: int) -> None:
        """Ask the person whether to go on after a death; the turn waits."""
        ...

    async def cancel(self, process_id: ProcessId, turn_id: TurnId, body: str) -> None:
        """Tell the agent to stop working on a turn that is over."""
        ...

    async def give_up(
        self, claim: Claim, process_id: ProcessId | None, rule: str, reason: str
    ) -> None:
        """The turn fails by a rule; a process that is named is to end."""
        ...

    async def end(self, process_id: ProcessId) -> None: ...

    async def living(self) -> tuple[LivingAgent, ...]: ...

    async def external_id(self, process_id: ProcessId) -> str | None: ...

    async def running(self) -> int:
        """How many agents may live in this home."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAsked:
    """What an agent wants to be allowed."""

    words: str
    """What it wants to do, in its own words."""
    allow_once: str | None
    """The agent's id of that choice; None if it does not offer it."""
    reject_once: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedServer:
    """An MCP server that the agent is told of."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class AgentLanguage(Protocol):
    """What is said to agents, and what they say, in the form of the wire. All of it is pure."""

    def line(self, number: int, kind: MessageKind, body: str) -> bytes:
        """A stored message as it is fed: always the same bytes for the same row."""
        ...

    def greeting(self) -> str: ...

    def opening(
        self, kind: MessageKind, external_id: str, workdir: str, servers: Sequence[PassedServer]
    ) -> str:
        """Have a session made or loaded."""
        ...

    def prompt(self, external_id: str, text: str) -> str: ...

    def cancel(self, external_id: str) -> str: ...

    def hear(self, offset: int, content: bytes) -> list[Heard]:
        """What whole lines say, of which the first begins at that place of the spool."""
        ...

    def permission(self, request: AgentRequest) -> PermissionAsked | None:
        """None if it makes no sense."""
        ...

    def permitted(self, request: AgentRequest, option: str | None) -> str:
        """The answer to a permission; without an option, it is cancelled."""
        ...

    def answer(self, request: AgentRequest, result: Mapping[str, object]) -> str: ...

    def refusal(self, request: AgentRequest, why: str, *, is_unknown: bool = False) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProgram:
    """How the process of an agent is started for a chat."""

    command: str
    workdir: str
    boundary: Boundary
    servers: tuple[PassedServer, ...]
    start: Callable[[], CommandSpec]
    """Makes the folders of its boundary. Raises OSError."""


class AgentPrograms(Protocol):
    def names(self) -> Collection[str]: ...

    def program(
        self, name: str, session_id: SessionId, standing: RoleStanding
    ) -> AgentProgram | str:
        """How to start it, or why it cannot be started here, in words."""
        ...


class AgentService(Protocol):
    """What serves the requests of agents beside permissions: files and terminals."""

    async def serve(
        self, claim: Claim, standing: RoleStanding, request: AgentRequest
    ) -> Mapping[str, object] | str | None:
        """The result; or why there is none, in words for the agent; or None: not yet. Serving a
        request again after a crash does the same. Raises LookupError for an unknown method."""
        ...
