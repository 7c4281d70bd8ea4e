"""What a command costs under its runner, relative to a bare spawn, and what a waiting one holds."""

import os
import resource
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import anyio

from benchmarks.place import BenchmarkFailed, say
from benchmarks.report import Measure, at_most
from koboshi.boundary.control_groups import find, switch_on
from koboshi.boundary.enclosure import Enclosure
from koboshi.boundary.probe import probe
from koboshi.domain.ids import ProcessId
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.ports.runners import UNCONFINED, CommandSpec, Confinement, Life
from koboshi.processes.runners import SHELLS, LocalRunners

SPAWNS = 50
WAITING = 100
CPU_SPAWNS = 20


def measure_runners(folder: Path, rounds: int) -> list[Measure]:
    return anyio.run(_measure, folder, rounds)


async def _measure(folder: Path, rounds: int) -> list[Measure]:
    runners = LocalRunners(folder / "processes")
    boundary, confinement = _inside(folder)
    bare: list[float] = []
    under: list[float] = []
    quickest: list[tuple[float, float, float]] = []
    cpu: list[float] = []
    for number in range(rounds):
        say(f"runners: round {number + 1} of {rounds}")
        ids = [ProcessId(2 * (number * SPAWNS + each)) for each in range(SPAWNS)]
        rows = [
            (
                _spawn_bare(),
                await _spawn_under(runners, each, UNCONFINED),
                await _spawn_under(runners, ProcessId(each + 1), confinement),
            )
            for each in ids
        ]
        bare.append(median(row[0] for row in rows))
        under.append(median(row[1] for row in rows))
        columns = list(zip(*rows, strict=True))
        quickest.append((min(columns[0]), min(columns[1]), min(columns[2])))
        first = ProcessId(2 * (rounds + number) * SPAWNS)
        cpu.append(await _cpu_added(runners, first, confinement))
    say(f"runners: {WAITING} at once")
    resting = await _memory(runners, first=4 * rounds * SPAWNS)
    runs = rounds * SPAWNS
    fastest_bare = min(each[0] for each in quickest)
    pairs_of_rounds = list(zip(under, bare, strict=True))
    return [
        Measure(name="`true`, bare spawn to exit", unit="ms", values=tuple(bare)),
        Measure(name="`true` under a runner, start to exit", unit="ms", values=tuple(under)),
        Measure(
            name="what the runner adds",
            unit="ms",
            values=tuple(ours - theirs for ours, theirs in pairs_of_rounds),
        ),
        Measure(
            # The quickest of all, run in turns: neighbours can only make one slower.
            name=f"what the runner adds (quickest of {runs})",
            unit="ms",
            values=(min(each[1] for each in quickest) - fastest_bare,),
            target=at_most(8),
        ),
        Measure(
            name=f"what the boundary adds to that ({boundary}, with limits; quickest of {runs})",
            unit="ms",
            values=(min(each[2] for each in quickest) - min(each[1] for each in quickest),),
            target=at_most(25),
        ),
        Measure(name="time of processors that it adds", unit="ms", values=tuple(cpu)),
        Measure(
            name="under a runner / bare",
            unit="x",
            values=tuple(ours / theirs for ours, theirs in pairs_of_rounds),
        ),
        Measure(
            name=f"memory of a waiting runner (PSS), {WAITING} at once",
            unit="MB",
            values=tuple(resting),
            target=at_most(1.5),
        ),
    ]


def _spawn_bare() -> float:
    """Milliseconds from the spawn of the shell to its end."""
    shell = next(each for each in SHELLS if Path(each).exists())
    began = time.perf_counter()
    os.waitpid(os.posix_spawn(shell, [shell, "-c", "--", "true"], {}), 0)
    return (time.perf_counter() - began) * 1000


def _inside(folder: Path) -> tuple[Boundary, Confinement]:
    """The boundary that holds here, around a working folder."""
    workdir = folder / "workdir"
    workdir.mkdir(parents=True, exist_ok=True)
    enclosure = Enclosure(
        sandbox=Sandbox.WORKSPACE,
        boundary=probe().best,
        workdirs=(str(workdir),),
        kept=str(folder / "inside"),
        memory_bytes_max=1 << 30,
        processes_max=1_000,
        groups=switch_on(find(f"koboshi-bench-{os.getpid()}")),
    )
    started = enclosure.start(enclosure.view_of("s1"), str(workdir), {}, session="s1")
    return enclosure.boundary, started.confinement


async def _spawn_under(
    runners: LocalRunners, process_id: ProcessId, confinement: Confinement
) -> float:
    """The same as the gateway does it: born durably, ended durably, and seen to have ended."""
    began = time.perf_counter()
    await runners.start(process_id, replace(_spec("true"), confinement=confinement))
    seen = await runners.wait(process_id)
    took = (time.perf_counter() - began) * 1000
    if seen.ending is None or seen.ending.exit_code != 0:
        raise BenchmarkFailed(f"`true` ended as {seen}")
    return took


async def _cpu_added(runners: LocalRunners, first: int, confinement: Confinement) -> float:
    """Milliseconds of processors that one command takes more inside: no neighbour counts."""
    spent = []
    for place, each in enumerate((UNCONFINED, confinement)):
        began = _cpu_of_children()
        for number in range(CPU_SPAWNS):
            process_id = ProcessId(first + place * CPU_SPAWNS + number)
            await _spawn_under(runners, process_id, each)
            while runners.look(process_id).life is Life.ALIVE:
                await runners.wait(process_id, 0.01)
        spent.append((_cpu_of_children() - began) / CPU_SPAWNS)
    return (spent[1] - spent[0]) * 1000


def _cpu_of_children() -> float:
    """Seconds of those that have ended, and of all that these have waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
