"""One tool of a server, as the rest of the gateway sees it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import msgspec

from koboshi.domain.approval import Approval
from koboshi.domain.phrases import YES_NO
from koboshi.domain.text import exactly
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.model import ToolSpec
from koboshi.ports.tool import ToolAnswer, ToolContext, ToolFailed
from koboshi.tools.declared import result_text
from koboshi.tools.mcp.endpoint import Declined, NotTaken, Unanswered
from koboshi.tools.mcp.listing import ListedTool, shown_name
from koboshi.tools.mcp.results import answer_text, harmless

ARGUMENT_CHARS_MAX = 1_000_000
_ANY_OBJECT = '{"type":"object"}'

Send = Callable[[str, Mapping[str, object]], Awaitable[object]]
"""Calls a tool by the server's name for it. Raises NotTaken, Unanswered or Declined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A `ports.tool.Tool`. It stays usable as an object when its server goes away."""

    name: str
    server: str
    listed: ListedTool
    effect: Effect
    need: Need
    send: Send

    @property
    def spec(self) -> ToolSpec:
        listed = self.listed
        return ToolSpec(
            name=self.name, description=listed.description, parameters=listed.parameters
        )

    def effect_of(self, arguments: str) -> Effect:  # noqa: ARG002  (the contract's; ours is fixed)
        return self.effect

    def need_of(self, arguments: str) -> Need:  # noqa: ARG002  (the contract's; ours is fixed)
        return self.need

    def complaint_about(self, arguments: str) -> str | None:
        """Only what costs nothing to see: the server checks against its schema itself."""
        try:
            given = _decoded(arguments)
        except ValueError as error:
            return str(error)
        missing = sorted(self.listed.required - given.keys())
        if missing:
            return f"`{harmless(missing[0], 80)}` is missing"
        known = self.listed.known
        strange = [] if known is None else sorted(given.keys() - known)
        if strange:
            return f"`{harmless(strange[0], 80)}` is not an argument of this tool"
        return None

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        return question_about(shown_name(self.listed.name), self.server, arguments)

    async def approval_of(self, arguments: str) -> Approval:
        shown = shown_name(self.listed.name)
        return approval_about(shown, self.server, self.name, arguments)

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:  # noqa: ARG002
        try:
            decoded = _decoded(arguments)
        except ValueError as error:
            raise ToolFailed(str(error)) from None
        try:
            answered = await self.send(self.listed.name, decoded)
        except NotTaken as error:
            raise ToolFailed(f"it was not started: {error}") from error
        except Declined as error:
            return ToolAnswer(text=result_text("error", error=harmless(str(error))))
        except Unanswered as error:
            return self._unanswered(str(error))
        return ToolAnswer(text=answer_text(answered))

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:  # noqa: ARG002
        raise RuntimeError(f"call {context.call_id} of {self.name} cannot be taken up")

    def _unanswered(self, why: str) -> ToolAnswer:
        if self.effect is not Effect.ONCE:
            raise ToolFailed(f"{why}; it does no harm to call it again")
        words = (
            f"{why}; it is unknown whether it was done. It may have completed, completed "
            "partly, or not run. Do not repeat it; first check its effect, and if you cannot, ask "
            "the person."
        )
        return ToolAnswer(text=result_text("unknown", error=words), is_unknown=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentMcpTool:
    """Stands for a tool of a server that has not been there since the start: nothing is known about
    it, so it is judged as the most dangerous one that needs no person."""

    name: str
    server: str

    @property
    def spec(self) -> ToolSpec:
        words = f"(the server {self.server} is not connected)"
        return ToolSpec(name=self.name, description=words, parameters=_ANY_OBJECT)

    def effect_of(self, arguments: str) -> Effect:  # noqa: ARG002  (the contract's)
        return Effect.ONCE

    def need_of(self, arguments: str) -> Need:  # noqa: ARG002  (the contract's)
        return Need.NOBODY

    def complaint_about(self, arguments: str) -> str | None:
        try:
            _decoded(arguments)
        except ValueError as error:
            return str(error)
        return None

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        return question_about(self.name, self.server, arguments)

    async def approval_of(self, arguments: str) -> Approval:
        """Sealed as the tool itself seals it: the server may be back when the yes comes."""
        return approval_about(self.name, self.server, self.name, arguments)

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:  # noqa: ARG002
        raise ToolFailed(f"it was not started: the server {self.server} is not connected")

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        return await self.run(arguments, context)


def approval_about(shown: str, server: str, name: str, arguments: str) -> Approval:
    """What a person is asked to allow before a tool of a server is used. `name` is what the model
    calls it."""
    return Approval(
        lead=f"May I use {shown} of {server} with this?",
        literal=arguments or "{}",
        notes=("It is not ours: its server decides what it does.",),
        binds=(server, name),
    )


def question_about(tool: str, server: str, arguments: str) -> tuple[str, tuple[Choice, ...]]:
    """What a person is asked before a tool of a server is used."""
    return f"May I use {tool} of {server} with this?\n\n{exactly(arguments)}", YES_NO


def _decoded(arguments: str) -> dict[str, object]:
    if len(arguments) > ARGUMENT_CHARS_MAX:
        raise ValueError(f"the arguments have more than {ARGUMENT_CHARS_MAX} characters")
    try:
        return msgspec.json.decode(arguments or "{}", type=dict[str, object])
    except RecursionError:
        raise ValueError("the arguments are nested too deeply") from None
    except ValueError:
        raise ValueError("the arguments are not one JSON object") from None
