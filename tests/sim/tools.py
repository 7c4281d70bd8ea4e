"""What tools and commands do to the world, which outlives every life of a gateway."""

import errno
import json
from dataclasses import dataclass
from pathlib import Path

from anyio import sleep, sleep_forever

from koboshi.boundary.enclosure import ON_HOST
from koboshi.domain.ids import ProcessId, SessionId
from koboshi.domain.process import Birth
from koboshi.ports.runners import (
    CommandSpec,
    EndedBy,
    Ending,
    LogSlice,
    Seen,
)
from koboshi.ports.runners import Life as ProcessLife
from koboshi.ports.store import Store
from koboshi.processes.ends import ProcessEnds
from koboshi.tools.ask import ASK
from koboshi.tools.asking import Asking
from koboshi.tools.patterns import matcher
from koboshi.tools.process import ProcessTool
from koboshi.tools.registry import Toolbox
from koboshi.tools.terminal import TerminalTool
from tests.harness.toolbox import Use, fake_tools
from tests.sim.effects import LINES, Effects, Program
from tests.sim.loop import BEGIN_MS, SimClock
from tests.sim.power import Power
from tests.sim.weather import Weather


@dataclass(frozen=True, slots=True, kw_only=True)
class SimRunners:
    """The runners as one life of a gateway reaches them."""

    effects: Effects
    power: Power
    clock: SimClock
    weather: Weather

    async def start(self, process_id: ProcessId, spec: CommandSpec) -> Birth | None:
        await self.power.takes(0.001, 0.05)
        if process_id in self.effects.voided:
            return None  # another worker has seen that it was never begun
        dice, now = self.power.dice, self.clock.monotonic()
        self.effects.started[spec.command] += 1
        ends_s = now + (55.0 if spec.command.startswith("slow ") else dice.uniform(0.01, 30.0))
        prints_s = sorted(dice.uniform(now, ends_s) for _ in range(LINES))
        self.effects.programs[process_id] = Program(
            spec.command, now, ends_s, dice.choice((0, 0, 3)), (now, *prints_s)
        )
        self.power.history.tell(f"command {spec.command!r} starts as process {process_id}")
        if self.weather.starves and dice.random() < 0.3:
            self._kill_later(process_id, dice.uniform(now, ends_s))
        await self.power.takes(0.001, 0.05)
        return _birth_of(process_id)

    def look(self, process_id: ProcessId) -> Seen:
        self.power.check_on()
        program = self.effects.programs.get(process_id)
        if program is None:
            self.effects.voided.add(process_id)
            return Seen(life=ProcessLife.UNBORN)
        birth = _birth_of(process_id)
        if self.clock.monotonic() < program.ends_s:
            return Seen(life=ProcessLife.ALIVE, birth=birth)
        if program.is_lost:
            return Seen(life=ProcessLife.LOST, birth=birth)
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
        await self.power.takes(0.0, 0.001)
        return self.look(process_id)

    async def end(self, process_id: ProcessId, *, grace_s: float) -> Seen:
        await self.power.takes(0.001, grace_s)
        program = self.effects.programs.get(process_id)
        if program is not None and self.clock.monotonic() < program.ends_s:
            program.ends_s, program.by = self.clock.monotonic(), EndedBy.REQUEST
            program.is_lost = False
        await self.power.takes(0.001, 0.05)
        return self.look(process_id)

    def read_log(self, process_id: ProcessId, offset: int, limit: int) -> LogSlice:
        self.power.check_on()
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

    def _kill_later(self, process_id: ProcessId, at_s: float) -> None:
        """The command and its runner are killed together: nothing tells how it ended."""
        program = self.effects.programs[process_id]
        program.ends_s, program.is_lost = at_s, True
        self.power.history.count("runners killed")

    def _log(self, process_id: ProcessId) -> bytes:
        program = self.effects.programs.get(process_id)
        return b"" if program is None else program.printed(self.clock.monotonic())


def sim_tools(runners: SimRunners, store: Store, workdir: Path) -> Toolbox:
    """Tools of every effect, and the real ones for commands on the runners of the simulation."""
    effects, power, clock = runners.effects, runners.power, runners.clock
    ends = ProcessEnds(
        processes=store.processes, runners=runners, clock=clock, matcher=matcher, redact=str
    )

    async def work(use: Use) -> str:
        if use.is_resumed:
            await power.takes(0.01, 2.0)
            return f"{use.tool} taken up and done"
        key = json.loads(use.arguments)["key"]
        await power.takes(0.0, 0.001)
        if key.endswith("!"):
            effects.killed[key.partition(".")[0]] += 1
            power.go_off(f"of the tool that runs for {key}")
        power.check_on()
        effects.run(use.tool, key, clock.monotonic())
        power.history.tell(f"tool {use.tool} runs for {key}")
        await power.takes(0.01, 6.0)
        if runners.weather.starves and power.dice.random() < 0.2:
            effects.starved.add(key.partition(".")[0])
            power.history.count("descriptors out")
            raise OSError(errno.EMFILE, "Too many open files")
        return f"{use.tool} {key} done"

    terminal = TerminalTool(
        processes=store.processes,
        runners=runners,
        clock=clock,
        asking=Asking(approval="never"),
        workdir=str(workdir),
        timeout_seconds=60,
        background_seconds=600,
        enclosure=ON_HOST,
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
        asking=Asking(approval="never"),
    )
    return Toolbox([*fake_tools(work), terminal, process, ASK])


async def _never(session_id: SessionId) -> None:
    await sleep_forever()


def _birth_of(process_id: ProcessId) -> Birth:
    return Birth(boot_id="boot", pid=1_000 + process_id, start_ticks=1)
