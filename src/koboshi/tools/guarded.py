"""A tool of a plug-in, made safe to have: whatever it does wrong counts as the strictest.

It may raise anything, and to leave (SystemExit) is not its to decide; a cancellation goes by.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import structlog
from anyio import move_on_after

from koboshi.domain.phrases import YES_NO, excerpt
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.model import ToolSpec
from koboshi.ports.tool import Tool, ToolAnswer, ToolContext, ToolFailed
from koboshi.tools.declared import result_text

DESCRIPTION_CHARS_MAX = 10_000
PARAMETERS_CHARS_MAX = 50_000
QUESTION_CHARS_MAX = 4_000

_MEMBERS = ("effect_of", "need_of", "complaint_about", "question_of", "run", "resume")

R = TypeVar("R")

log = structlog.get_logger()


def is_tool(made: object) -> bool:
    """Whether it has everything that a tool has. A class is not a tool yet."""
    if isinstance(made, type) or not hasattr(made, "spec"):
        return False
    return all(callable(getattr(made, member, None)) for member in _MEMBERS)


def guarded(tool: Tool, plugin: str, *, seconds_max: float) -> "GuardedTool":
    """The tool with its guard. Raises ValueError if it does not describe itself properly."""
    spec = tool.spec
    if not all(isinstance(text, str) for text in (spec.name, spec.description, spec.parameters)):
        raise ValueError("its name, description and parameters are not all texts")
    if len(spec.description) > DESCRIPTION_CHARS_MAX or len(spec.parameters) > PARAMETERS_CHARS_MAX:
        raise ValueError("its description or its parameters are too long")
    try:
        msgspec.json.decode(spec.parameters, type=dict[str, object])
    except (ValueError, RecursionError):
        raise ValueError("its parameters are not a JSON schema: one object, as text") from None
    told = ToolSpec(name=spec.name, description=spec.description, parameters=spec.parameters)
    return GuardedTool(spec=told, tool=tool, plugin=plugin, seconds_max=seconds_max)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedTool:
    """A `ports.tool.Tool` around one that may raise, or answer with something else."""

    spec: ToolSpec
    tool: Tool
    plugin: str
    seconds_max: float

    def effect_of(self, arguments: str) -> Effect:
        """As the tool says; `once` if it does not say."""
        return self._asked("effect_of", self.tool.effect_of, arguments, Effect, Effect.ONCE)

    def need_of(self, arguments: str) -> Need:
        """As the tool says; a person's approval if it does not say."""
        return self._asked("need_of", self.tool.need_of, arguments, Need, Need.APPROVAL)

    def complaint_about(self, arguments: str) -> str | None:
        """As the tool says; where it cannot check the arguments, they are not used."""
        broken = f"the plug-in {self.plugin} could not check the arguments: it is broken"

        def complaint(arguments: str) -> str:
            return self.tool.complaint_about(arguments) or ""

        return self._asked("complaint_about", complaint, arguments, str, broken) or None

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        plain = (f"May I use {self.spec.name} with this?", YES_NO)
        asked = self._asked("question_of", self.tool.question_of, arguments, tuple, plain)
        match asked:
            case (str() as text, tuple() as choices) if all(
                isinstance(choice, Choice) for choice in choices
            ):
                return text[:QUESTION_CHARS_MAX], choices
            case _:
                self._complain("question_of", "it answered with something else")
                return plain

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        return await self._done("run", self.tool.run, arguments, context)

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        return await self._done("resume", self.tool.resume, arguments, context)

    def _asked(
        self,
        member: str,
        ask: Callable[[str], object],
        arguments: str,
        kind: "type[R]",
        otherwise: R,
    ) -> R:
        try:
            answer = ask(arguments)
        except (Exception, SystemExit):
            log.error("plugin_broke", tool=self.spec.name, in_=member, exc_info=True)
            return otherwise
        if isinstance(answer, kind):
            return answer
        self._complain(member, f"it answered with a {type(answer).__name__}")
        return otherwise

    async def _done(
        self,
        member: str,
        work: Callable[[str, ToolContext], Awaitable[object]],
        arguments: str,
        context: ToolContext,
    ) -> ToolAnswer:
        try:
            with move_on_after(self.seconds_max):
                return self._read(await work(arguments, context))
        except ToolFailed:
            raise
        except (Exception, SystemExit) as error:
            log.error("plugin_broke", tool=self.spec.name, in_=member, exc_info=True)
            if shortage_in(error) and self.effect_of(arguments) is not Effect.ONCE:
                raise  # it can be taken up, or run again, when there is enough of it again
            words = excerpt(f"{type(error).__name__}: {error}", 500)
            return self._broke_off(arguments, f"it broke while it ran ({words})")
        return self._broke_off(arguments, f"it took longer than {self.seconds_max:g} seconds")

    def _read(self, answer: object) -> ToolAnswer:
        match answer:
            case str():
                return ToolAnswer(text=answer)
            case ToolAnswer(text=str() as text, is_unknown=is_unknown):
                return ToolAnswer(text=text, is_unknown=bool(is_unknown))
            case _:
                raise TypeError(f"the result is a {type(answer).__name__}, not a ToolAnswer")

    def _broke_off(self, arguments: str, why: str) -> ToolAnswer:
        """It is unknown how far it got. Where that may matter, the model is told so."""
        if self.effect_of(arguments) in (Effect.NONE, Effect.REPEATABLE):
            raise ToolFailed(f"{why}; it does no harm to call it again")
        words = (
            f"{why}; it is unknown what it did. It may have completed, completed partly, or not "
            "run. Do not repeat it; first check its effect, and if you cannot, ask the person."
        )
        return ToolAnswer(text=result_text("unknown", error=words), is_unknown=True)

    def _complain(self, member: str, what: str) -> None:
        log.error("plugin_broke", tool=self.spec.name, in_=member, reason=what)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentTool:
    """Stands for a tool while the plug-ins are still being loaded: nothing is known about it, so it
    is judged as the most dangerous one that needs no person, and it is reached before it runs."""

    name: str

    @property
    def spec(self) -> ToolSpec:
        words = "(its plug-in is still being loaded)"
        return ToolSpec(name=self.name, description=words, parameters='{"type":"object"}')

    def effect_of(self, arguments: str) -> Effect:  # noqa: ARG002  (the contract's)
        return Effect.ONCE

    def need_of(self, arguments: str) -> Need:  # noqa: ARG002  (the contract's)
        return Need.NOBODY

    def complaint_about(self, arguments: str) -> str | None:  # noqa: ARG002  (the contract's)
        return None

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:  # noqa: ARG002
        return f"May I use {self.name} with this?", YES_NO

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:  # noqa: ARG002
        raise ToolFailed("it was not started: its plug-in is still being loaded")

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        return await self.run(arguments, context)
