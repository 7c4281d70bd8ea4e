"""What a command costs under its runner, relative to a bare spawn, and what a waiting one holds."""

import os
import time
from pathlib import Path
from statistics import median

import anyio

from benchmarks.place import BenchmarkFailed, say
from benchmarks.report import Measure, below
from koboshi.domain.ids import ProcessId
from koboshi.ports.runners import CommandSpec, Life
from koboshi.processes.runners import SHELLS, LocalRunners

SPAWNS = 50
WAITING = 100


def measure_runners(folder: Path, rounds: int) -> list[Measure]:
    return anyio.run(_measure, folder, rounds)


async def _measure(folder: Path, rounds: int) -> list[Measure]:
    runners = LocalRunners(folder / "processes")
    bare: list[float] = []
    under: list[float] = []
    for number in range(rounds):
        say(f"runners: round {number + 1} of {rounds}")
        pairs = [
            (_spawn_bare(), await _spawn_under(runners, ProcessId(number * SPAWNS + each)))
            for each in range(SPAWNS)
        ]
        bare.append(median(pair[0] for pair in pairs))
        under.append(median(pair[1] for pair in pairs))
    say(f"runners: {WAITING} at once")
    resting = await _memory(runners, first=rounds * SPAWNS)
    pairs_of_rounds = list(zip(under, bare, strict=True))
    return [
        Measure(name="`true`, bare spawn to exit", unit="ms", values=tuple(bare)),
        Measure(name="`true` under a runner, start to exit", unit="ms", values=tuple(under)),
        Measure(
            name="what the runner adds",
            unit="ms",
            values=tuple(ours - theirs for ours, theirs in pairs_of_rounds),
            target=below(40),
        ),
        Measure(
            name="under a runner / bare",
            unit="x",
            values=tuple(ours / theirs for ours, theirs in pairs_of_rounds),
        ),
        Measure(
            name=f"memory of a waiting runner (PSS), {WAITING} at once",
            unit="MB",
            values=tuple(resting),
            target=below(5),
        ),
    ]


def _spawn_bare() -> float:
    """Milliseconds from the spawn of the shell to its end."""
    shell = next(each for each in SHELLS if Path(each).exists())
    began = time.perf_counter()
    os.waitpid(os.posix_spawn(shell, [shell, "-c", "--", "true"], {}), 0)
    return (time.perf_counter() - began) * 1000


async def _spawn_under(runners: LocalRunners, process_id: ProcessId) -> float:
    """The same as the gateway does it: born durably, ended durably, and seen to have ended."""
    began = time.perf_counter()
    await runners.start(process_id, _spec("true"))
    seen = await runners.wait(process_id)
    took = (time.perf_counter() - began) * 1000
    if seen.ending is None or seen.ending.exit_code != 0:
        raise BenchmarkFailed(f"`true` ended as {seen}")
    return took


async def _memory(runners: LocalRunners, first: int) -> list[float]:
    """Megabytes of each, while all of them wait."""
    ids = [ProcessId(first + number) for number in range(WAITING)]
    pids: list[int] = []
    for each in ids:
        birth = await runners.start(each, _spec("echo up; sleep 1000"))
        if birth is None:
            raise BenchmarkFailed(f"process {each} was not born")
        pids.append(birth.pid)
    for each in ids:
        while runners.look(each).life is Life.ALIVE and not runners.read_log(each, 0, 1).total:
            await runners.wait(each, 0.01)
    sizes = [_proportional_mb(pid) for pid in pids]
    for each in ids:
        await runners.end(each, grace_s=5)
    return sizes


def _proportional_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1000
    raise BenchmarkFailed("the system does not tell how much memory a process holds")


def _spec(command: str) -> CommandSpec:
    return CommandSpec(
        command=command,
        workdir="/",
        environment={"PATH": "/usr/local/bin:/usr/bin:/bin"},
        timeout_seconds=600,
        takes_input=False,
    )
