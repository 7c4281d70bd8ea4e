"""Tools of every effect, without a real one: the test decides what they do."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from anyio import Event

from koboshi.domain.phrases import YES_NO
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.model import ToolSpec
from koboshi.ports.tool import Load, Tool, ToolAnswer, ToolContext
from koboshi.tools.ask import ASK
from koboshi.tools.pause import PAUSE
from koboshi.tools.registry import Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One time that a tool is run, or a call of it taken up."""

    tool: str
    arguments: str
    is_resumed: bool

    def __str__(self) -> str:
        return f"{self.tool}:resumed" if self.is_resumed else self.tool


Work: TypeAlias = Callable[[Use], Awaitable[str]]
"""What a use does, and what the model is told of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeTool:
    name: str
    effect: Effect
    work: Work
    need: Need = Need.NOBODY
    load: Load = Load.WORK

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description="", parameters="{}")

    def effect_of(self, arguments: str) -> Effect:
        return self.effect

    def need_of(self, arguments: str) -> Need:
        return self.need

    def load_of(self, arguments: str) -> Load:
        return self.load

    def complaint_about(self, arguments: str) -> str | None:
        return "`bad` is not an argument" if "bad" in arguments else None

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        return f"May I run {self.name}?", YES_NO

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        return await self._do(arguments, is_resumed=False)

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        assert self.effect is Effect.RESUMABLE, "only these can be taken up"
        return await self._do(arguments, is_resumed=True)

    async def _do(self, arguments: str, *, is_resumed: bool) -> ToolAnswer:
        use = Use(tool=self.name, arguments=arguments, is_resumed=is_resumed)
        return ToolAnswer(text=await self.work(use))


def fake_tools(work: Work) -> list[Tool]:
    """`do_<effect>` for each effect, `command`, which counts as one in the foreground, and
    `guarded`, which is strict and needs an approval."""
    made: list[Tool] = [
        FakeTool(name=f"do_{effect.value}", effect=effect, work=work) for effect in Effect
    ]
    made.append(FakeTool(name="command", effect=Effect.RESUMABLE, work=work, load=Load.COMMAND))
    return [*made, FakeTool(name="guarded", effect=Effect.ONCE, work=work, need=Need.APPROVAL)]


@dataclass(slots=True)
class World:
    """What the tools did to the world. It outlives the gateway."""

    ran: list[str] = field(default_factory=list)
    """`<tool>` for each run, `<tool>:resumed` for each time a call was taken up."""
    hangs: set[str] = field(default_factory=set)
    """Tools that do not return before `released`."""
    released: Event = field(default_factory=Event)
    raises: Callable[[str], Exception | None] = lambda _: None
    results: dict[str, str] = field(default_factory=dict)
    write_down: Callable[[str], None] = lambda _: None
    """Called with each run before its effect."""
    is_without: set[str] = field(default_factory=set)
    """Tools that the next gateway does not have."""

    def tools(self) -> Toolbox:
        made = [tool for tool in fake_tools(self._work) if tool.spec.name not in self.is_without]
        return Toolbox([*made, ASK, PAUSE])

    async def _work(self, use: Use) -> str:
        self.write_down(str(use))
        self.ran.append(str(use))
        error = self.raises(use.tool)
        if error is not None:
            raise error
        if use.tool in self.hangs:
            await self.released.wait()
        return self.results.get(use.tool, f"{use} done")
