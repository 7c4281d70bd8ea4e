"""A tool: something the agent can do in the world."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from koboshi.domain.approval import Approval
from koboshi.domain.files import Parcel
from koboshi.domain.ids import CallId, ProcessId
from koboshi.domain.role import RoleStanding
from koboshi.domain.route import Route
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.domain.turn import Claim
from koboshi.ports.model import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """For which turn and call a tool runs."""

    claim: Claim
    call_id: CallId
    route: Route
    seal: str | None = None
    """What the person's yes to this call is bound to; None if none was needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """The outcome of a call, in words for the model. `exits_read` are processes that it showed as
    ended; `is_unknown` says that the effect is unknown; `parcel` is owed to the person."""

    text: str
    exits_read: tuple[ProcessId, ...] = ()
    is_unknown: bool = False
    parcel: Parcel | None = None


class ToolFailed(Exception):
    """The call did not do what was asked; the model is told the words."""


class TurnSetDown(Exception):
    """The call goes on after the next boot of the gateway: its turn is given back now."""


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    def effect_of(self, arguments: str) -> Effect:
        """What repeating a call with these arguments would do."""
        ...

    def need_of(self, arguments: str) -> Need:
        """Whom a call with these arguments waits for."""
        ...

    def complaint_about(self, arguments: str) -> str | None:
        """Why these arguments cannot be used, in words for the model; None if they can."""
        ...

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        """The question to the person, for a call that waits for them."""
        ...

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        """Do it. Raises ToolFailed with words for the model."""
        ...

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        """Continue a call that was running when the gateway died. Only for `resumable` ones."""
        ...


class Load(StrEnum):
    """What a call needs while it runs."""

    WORK = "work"  # it computes: its turn keeps its slot
    WAIT = "wait"  # it only waits: its turn needs no slot
    COMMAND = "command"  # it waits for a command of its own; only so many run at once


@runtime_checkable
class KnowsLoad(Protocol):
    """A tool with calls that only wait. Other tools need not implement this."""

    def complaint_about(self, arguments: str) -> str | None: ...

    def load_of(self, arguments: str) -> Load:
        """What a call with these arguments needs while it runs."""
        ...


def load_of(tool: object, arguments: str) -> Load:
    """What a call needs while it runs. A tool that does not say so computes; so does a call with
    unusable arguments or a missing tool."""
    if not isinstance(tool, KnowsLoad) or tool.complaint_about(arguments) is not None:
        return Load.WORK
    return tool.load_of(arguments)


@runtime_checkable
class AsksApproval(Protocol):
    """A tool that says itself what is to be allowed. Of others the person is shown the arguments,
    as they are, below the tool's question."""

    async def approval_of(self, arguments: str) -> Approval:
        """What a person is asked to allow. The same for the same arguments, as long as what would
        happen is the same."""
        ...


@runtime_checkable
class JudgesByFacts(Protocol):
    """A tool whose need depends on stored facts. `need_of` is then the strictest need."""

    async def need_now(self, arguments: str) -> Need: ...


async def approval_of(tool: Tool, arguments: str) -> Approval:
    """What a person is asked to allow before a call."""
    if isinstance(tool, AsksApproval):
        return await tool.approval_of(arguments)
    question, _ = tool.question_of(arguments)
    return Approval(lead=question, literal=arguments)


async def need_of(tool: Tool, arguments: str) -> Need:
    """Whom a call waits for."""
    if isinstance(tool, JudgesByFacts):
        return await tool.need_now(arguments)
    return tool.need_of(arguments)


class ToolSource(Protocol):
    """Tools that come and go with their server."""

    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model is told of now."""
        ...

    def find(self, name: str) -> Tool | None:
        """The tool of that name, or a stand-in while its server is away; None if it is not of this
        source."""
        ...

    async def reach(self, name: str) -> Tool | None:
        """The tool of that name, with its server connected; None if it is not of this source.

        Waits for the server, with a limit. Raises ToolFailed if it does not come.
        """
        ...

    async def settle(self) -> None:
        """Wait, with a limit, until each server has connected or has failed once."""
        ...


class Tools(Protocol):
    """The tools of one gateway."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def within(self, standing: RoleStanding) -> "Tools":
        """The tools that a turn has by its role, in the folder of its chat."""
        ...

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them."""
        ...

    def find(self, name: str) -> Tool | None:
        """The tool of that name; None if there is none. It may be out of reach now."""
        ...

    async def reach(self, name: str) -> Tool | None:
        """The tool of that name, ready to run; None if there is none.

        To be called before a call is stored as started: a failure here proves that it did not run.
        Raises ToolFailed, in words for the model, if it is out of reach.
        """
        ...

    async def settle(self) -> None:
        """Wait, with a limit, for tools that are still connecting after the start, so that the
        model sees the same tools before and after a restart."""
        ...
