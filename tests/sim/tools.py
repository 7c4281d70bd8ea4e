"""What tools and commands do to the world, which outlives every life of a gateway."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from anyio import sleep, sleep_forever

from koboshi.domain.ids import ProcessId, SessionId
from koboshi.domain.phrases import YES_NO
from koboshi.domain.process import Birth
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.model import ToolSpec
from koboshi.ports.runners import (
    CommandSpec,
    EndedBy,
    Ending,
    LogSlice,
    Seen,
)
from koboshi.ports.runners import Life as ProcessLife
from koboshi.ports.tool import Tool, ToolAnswer, ToolContext
from koboshi.stores.sqlite.store import SqliteStore
from koboshi.tools.ask import ASK
from koboshi.tools.ends import Ends
from koboshi.tools.patterns import matcher
from koboshi.tools.process import ProcessTool
from koboshi.tools.registry import Toolbox
from koboshi.tools.terminal import TerminalTool
from tests.sim.loop import BEGIN_MS, SimClock
from tests.sim.power import Power


@dataclass(slots=True)
class Program:
    """A command that runs under its runner, whoever is there to see it."""

    command: str
    born_s: float
    ends_s: float
    code: int
    by: EndedBy = EndedBy.ITSELF


@dataclass(slots=True)
class Effects:
    """Everything that was done to the world."""

    ran: Counter[str] = field(default_factory=Counter)
    """How often each call was begun, by its key."""
    started: Counter[str] = field(default_factory=Counter)
    """How often each command was started."""
    programs: dict[ProcessId, Program] = field(default_factory=dict)
    voided: set[ProcessId] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimTool:
    name: str
    effect: Effect
    effects: Effects
    power: Power
    need: Need = Need.NOBODY

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description="", parameters="{}")

    def effect_of(self, arguments: str) -> Effect:
        return self.effect

    def need_of(self, arguments: str) -> Need:
        return self.need

    def complaint_about(self, arguments: str) -> str | None:
        return None

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        return f"May I run {self.name}?", YES_NO

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        key = json.loads(arguments)["key"]
        self.power.check()
        self.effects.ran[f"{self.name} {key}"] += 1
        self.power.history.tell(f"tool {self.name} runs for {key}")
        await self.power.takes(0.01, 6.0)
        return ToolAnswer(text=f"{self.name} {key} done")

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        assert self.effect is Effect.RESUMABLE, "only these can be taken up"
        await self.power.takes(0.01, 2.0)
        return ToolAnswer(text=f"{self.name} taken up and done")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimRunners:
    """The runners as one life of a gateway reaches them."""

    effects: Effects
    power: Power
    clock: SimClock

    async def start(self, process_id: ProcessId, spec: CommandSpec) -> Birth | None:
        await self.power.takes(0.001, 0.05)
        assert process_id not in self.effects.voided, "what was voided never begins"
        dice, now = self.power.dice, self.clock.monotonic()
        self.effects.started[spec.command] += 1
        self.effects.programs[process_id] = Program(
            spec.command, now, now + dice.uniform(0.01, 30.0), dice.choice((0, 0, 3))
        )
        self.power.history.tell(f"command {spec.command!r} starts as process {process_id}")
        await self.power.takes(0.001, 0.05)
        return _birth_of(process_id)

    def look(self, process_id: ProcessId) -> Seen:
        self.power.check()
        program = self.effects.programs.get(process_id)
        if program is None:
            self.effects.voided.add(process_id)
            return Seen(life=ProcessLife.UNBORN)
        birth = _birth_of(process_id)
        if self.clock.monotonic() < program.ends_s:
            return Seen(life=ProcessLife.ALIVE, birth=birth)
        is_asked = program.by is EndedBy.REQUEST
        ending = Ending(
            by=program.by,
            exit_code=None if is_asked else program.code,
            signal=15 if is_asked else None,
            ended_ms=BEGIN_MS + round(program.ends_s * 1000),
        )
        return Seen(life=ProcessLife.ENDED, birth=birth, ending=ending)

    async def wait(self, process_id: ProcessId, at_most_s: float | None = None) -> Seen:
        program = self.effects.programs.get(process_id)
        if program is not None:
            left_s = max(0.0, program.ends_s - self.clock.monotonic())
            await sleep(left_s + 0.01 if at_most_s is None else min(left_s + 0.01, at_most_s))
        return self.look(process_id)

    async def end(self, process_id: ProcessId, *, grace_s: float) -> Seen:
        await self.power.takes(0.001, grace_s)
        program = self.effects.programs.get(process_id)
        if program is not None and self.clock.monotonic() < program.ends_s:
            program.ends_s, program.by = self.clock.monotonic(), EndedBy.REQUEST
        await self.power.takes(0.001, 0.05)
        return self.look(process_id)

    def read_log(self, process_id: ProcessId, offset: int, limit: int) -> LogSlice:
        self.power.check()
        content = self._log(process_id)
        begin = offset if offset >= 0 else max(0, len(content) + offset)
        return LogSlice(offset=begin, content=content[begin : begin + limit], total=len(content))

    def log_size(self, process_id: ProcessId) -> int:
        return len(self._log(process_id))

    async def write(self, process_id: ProcessId, content: bytes) -> bool:
        return False

    def remove(self, process_id: ProcessId) -> None:
        self.effects.programs.pop(process_id, None)
        self.effects.voided.discard(process_id)

    def _log(self, process_id: ProcessId) -> bytes:
        program = self.effects.programs.get(process_id)
        return b"" if program is None else f"output of {program.command}\n".encode()


def sim_tools(
    effects: Effects, power: Power, clock: SimClock, store: SqliteStore, workdir: Path
) -> Toolbox:
    """Tools of every effect, and the real ones for commands on the runners of the simulation."""
    runners = SimRunners(effects=effects, power=power, clock=clock)
    ends = Ends(
        processes=store.processes, runners=runners, clock=clock, matcher=matcher, redact=str
    )
    made: list[Tool] = [
        SimTool(name=f"do_{effect.value}", effect=effect, effects=effects, power=power)
        for effect in Effect
    ]
    guarded = SimTool(
        name="guarded", effect=Effect.ONCE, effects=effects, power=power, need=Need.APPROVAL
    )
    terminal = TerminalTool(
        processes=store.processes,
        runners=runners,
        clock=clock,
        approval="never",
        workdir=str(workdir),
        timeout_seconds=60,
        background_seconds=600,
        environment={},
        store_end=ends.store,
    )
    process = ProcessTool(
        processes=store.processes,
        runners=runners,
        clock=clock,
        store_end=ends.store,
        until_written_to=_never,
        booted_ms=clock.now_ms(),
    )
    return Toolbox([*made, guarded, terminal, process, ASK])


async def _never(session_id: SessionId) -> None:
    await sleep_forever()


def _birth_of(process_id: ProcessId) -> Birth:
    return Birth(boot_id="boot", pid=1_000 + process_id, start_ticks=1)
