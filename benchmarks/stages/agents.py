"""What a foreign agent that talks costs the gateway: processor time for each update, and commits.

The agent is the fake one of the tests, and speaks for real through its runner and its spool: once
it says everything at once, and once it streams like a model that answers quickly.
"""

import json
import select
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import anyio

from benchmarks.gateway import Talk, cpu_seconds, serving
from benchmarks.place import DATABASE_NAME, ROOT, BenchmarkFailed, say
from benchmarks.report import Measure, at_most
from koboshi.domain.ids import ProcessId
from koboshi.processes.runners import LocalRunners

AGENT = ROOT / "tests" / "fakes" / "acp" / "agent.py"
AT_ONCE = 20_000
STREAMED, PAUSE_MS = 1_000, 5
LOOK_EVERY_S = 0.02
SECONDS_MAX = 120
PLACE = "SELECT coalesce(max(read_offset), 0) FROM agent_processes"
DONE = "SELECT count(*) FROM turns WHERE state = 'done'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    cpu_seconds: float
    commits: int
    seconds: float
    """From the first commit to the last."""


def measure_agents(folder: Path, rounds: int) -> list[Measure]:
    at_once, streamed = [], []
    for number in range(rounds):
        say(f"agents: round {number + 1} of {rounds}")
        home = folder / f"agents-{number}"
        _configure(home)
        with serving(home) as gateway:
            try:
                gateway.wait_until_ready()
                _spent(gateway, 1, "say warm")  # it is started, and its library loaded
                at_once.append(_spent(gateway, 2, f"flood {AT_ONCE}"))
                streamed.append(_spent(gateway, 3, f"flood {STREAMED} {PAUSE_MS}"))
            finally:
                gateway.stop()
                anyio.run(_end_agents, home)
    return [
        _cpu(f"agent, {AT_ONCE} updates at once: CPU per update", at_once, AT_ONCE),
        _cpu(f"agent, an update every {PAUSE_MS} ms: CPU per update", streamed, STREAMED),
        Measure(
            name=f"agent, an update every {PAUSE_MS} ms: commits a second",
            unit="/s",
            values=tuple((each.commits - 1) / each.seconds for each in streamed),
            target=at_most(4),
        ),
    ]


def _cpu(name: str, spent: list[Spent], updates: int) -> Measure:
    values = tuple(1_000 * each.cpu_seconds / updates for each in spent)
    return Measure(name=name, unit="ms", values=values, target=at_most(0.2))


def _configure(home: Path) -> None:
    home.mkdir(mode=0o700, parents=True)
    (home.parent / "workdir").mkdir(exist_ok=True)
    command = json.dumps([sys.executable, str(AGENT)])
    text = f'[gateway]\nagent = "fake"\n[agents.fake]\ncommand = {command}\n'
    (home / "koboshi.toml").write_text(text)


def _spent(gateway: Talk, turn: int, line: str) -> Spent:
    """What a turn costs in which the agent does that."""
    path = gateway.home / DATABASE_NAME
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:

        def number(query: str) -> int:
            ((found,),) = database.execute(query).fetchall()
            return int(found)

        before, places, times = cpu_seconds(gateway.process.pid), {number(PLACE)}, []
        gateway.post("ann", f"> {line}", key=str(turn))
        limit = time.monotonic() + SECONDS_MAX
        while number(DONE) < turn:
            if time.monotonic() > limit:
                raise BenchmarkFailed(f"the agent did not come to the end of {line!r}")
            if (place := number(PLACE)) not in places:
                places.add(place)
                times.append(time.monotonic())
            select.select((), (), (), LOOK_EVERY_S)
        spent = cpu_seconds(gateway.process.pid) - before
        seconds = max(times[-1] - times[0], 0.001) if times else 1.0
        return Spent(cpu_seconds=spent, commits=len(times), seconds=seconds)


async def _end_agents(home: Path) -> None:
    """They outlive their gateway."""
    folder = home / "processes"
    runners = LocalRunners(folder)
    for place in sorted(folder.glob("[0-9]*")):
        await runners.end(ProcessId(int(place.name)), grace_s=0)
