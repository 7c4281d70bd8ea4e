"""Tools of every effect that write down each time they run."""

from collections.abc import Callable
from dataclasses import dataclass, field

from anyio import Event

from koboshi.domain.phrases import YES_NO
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.model import ToolSpec
from koboshi.ports.tool import Tool, ToolAnswer, ToolContext
from koboshi.tools.ask import ASK
from koboshi.tools.pause import PAUSE
from koboshi.tools.registry import Toolbox


@dataclass(slots=True)
class World:
    """What the tools did to the world. It outlives the gateway."""

    ran: list[str] = field(default_factory=list)
    """`<tool>` for each run, `<tool>:resumed` for each time a call was taken up."""
    hangs: set[str] = field(default_factory=set)
    """Tools that do not come back before `released`."""
    released: Event = field(default_factory=Event)
    raises: Callable[[str], Exception | None] = lambda _: None
    results: dict[str, str] = field(default_factory=dict)
    write_down: Callable[[str], None] = lambda _: None
    """Told each run before it has any effect."""

    def tools(self) -> Toolbox:
        made: list[Tool] = [CountedTool(f"do_{effect.value}", effect, self) for effect in Effect]
        return Toolbox(
            [*made, CountedTool("guarded", Effect.ONCE, self, Need.APPROVAL), ASK, PAUSE]
        )


@dataclass(frozen=True, slots=True)
class CountedTool:
    name: str
    effect: Effect
    world: World
    need: Need = Need.NOBODY

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description="", parameters="{}")

    def effect_of(self, arguments: str) -> Effect:
        return self.effect

    def need_of(self, arguments: str) -> Need:
        return self.need

    def complaint_about(self, arguments: str) -> str | None:
        return "`bad` is not an argument" if "bad" in arguments else None

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        return f"May I run {self.name}?", YES_NO

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        return await self._do(self.name)

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        assert self.effect is Effect.RESUMABLE, "only these can be taken up"
        return await self._do(f"{self.name}:resumed")

    async def _do(self, what: str) -> ToolAnswer:
        self.world.write_down(what)
        self.world.ran.append(what)
        error = self.world.raises(self.name)
        if error is not None:
            raise error
        if self.name in self.world.hangs:
            await self.world.released.wait()
        return ToolAnswer(text=self.world.results.get(self.name, f"{what} done"))
