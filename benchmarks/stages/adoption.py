"""What many processes of an earlier life cost the first person who writes.

The rows are made by the verbs of the store. The files of the runners are made by hand: to start a
thousand real ones would take minutes and measure something else. Those that run have a lock that is
held and the birth of a process that lives, which is all that a gateway can see of a real one.
"""

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio

from benchmarks.fill import CHANNEL
from benchmarks.gateway import first_answer
from benchmarks.place import say
from benchmarks.report import Measure, at_most
from koboshi.clock import SystemClock
from koboshi.domain.command import Command, Response, SessionFacts
from koboshi.domain.ids import CallId, ChannelName
from koboshi.domain.inbox import Words
from koboshi.domain.process import Birth
from koboshi.domain.recovery import BootConfig, Policy
from koboshi.domain.route import Route
from koboshi.domain.transcript import Reply
from koboshi.domain.watch import WatcherKind, WatcherSpec
from koboshi.domain.worker import EndedHow
from koboshi.ports.channel import Inbound
from koboshi.ports.store import Arrival, Store
from koboshi.runner.tree import START, stat_of
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores.sqlite.store import open_store

SESSIONS = 100
ENDED, RUNNING = 1_000, 100
EACH = (ENDED + RUNNING) // SESSIONS


def measure_adoption(folder: Path, rounds: int) -> list[Measure]:
    template = folder / "adoption"
    empty: list[float] = []
    full: list[float] = []
    with _sleeper() as birth:
        template.mkdir(mode=0o700, parents=True)
        anyio.run(_fill, template, birth)
        first_answer(folder / "adoption-warm")
        for number in range(rounds):
            say(f"adoption: round {number + 1} of {rounds}")
            empty.append(first_answer(folder / f"adoption-empty-{number}"))
            home = folder / f"adoption-full-{number}"
            shutil.copytree(template, home)
            with _files(home / "processes", birth):
                full.append(first_answer(home, until_logged="process_ended", times=ENDED))
    words = f"{ENDED} ended, {RUNNING} running"
    return [
        Measure(name="exec to first answer, empty", unit="s", values=tuple(empty)),
        Measure(name=f"exec to first answer, {words}", unit="s", values=tuple(full)),
        Measure(
            name="with processes to adopt / empty",
            unit="x",
            values=tuple(ours / bare for ours, bare in zip(full, empty, strict=True)),
            target=at_most(2),
        ),
    ]


@contextmanager
def _sleeper() -> Iterator[Birth]:
    """A process that lives, whose birth the running ones have."""
    process = subprocess.Popen(["sleep", "3600"])
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    try:
        ticks = int(stat_of(process.pid)[START])
        yield Birth(boot_id=boot_id, pid=process.pid, start_ticks=ticks)
    finally:
        process.kill()
        process.wait()


@contextmanager
def _files(folder: Path, birth: Birth) -> Iterator[None]:
    """What the runners have left, with the locks of those that run."""
    born = {"boot_id": birth.boot_id, "pid": birth.pid, "start_ticks": birth.start_ticks}
    with ExitStack() as locks:
        for number in range(1, ENDED + RUNNING + 1):
            place = folder / str(number)
            place.mkdir(mode=0o700, parents=True)
            (place / "born.json").write_text(json.dumps(born))
            lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            locks.callback(os.close, lock)
            if number % EACH:
                (place / "exit.json").write_text(json.dumps(_exit()))
            else:
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _exit() -> dict[str, object]:
    return {
        "by": "itself",
        "exit_code": 3,
        "signal": None,
        "ended_ms": time.time_ns() // 1_000_000,
        "error": "",
        "output_bytes": 0,
    }


async def _fill(home: Path, birth: Birth) -> None:
    world = BootConfig(
        policy=Policy(),
        channels={ChannelName(CHANNEL): True},
        is_allowed=lambda _channel, _person: True,
    )
    store = await open_store(home, world=world, clock=SystemClock(), wakeups=LocalWakeups())
    worker = await store.workers.start("bench", os.getpid(), "bench", "0")
    await _accept(store)
    claims = await store.turns.claim(worker.worker_id, SESSIONS)
    end = (WatcherSpec(kind=WatcherKind.EXIT),)
    for claim in claims:
        for place in range(EACH):
            process = await store.processes.begin(
                claim,
                CallId(f"{claim.turn_id}.{place}"),
                command="make",
                workdir="/",
                is_foreground=False,
                # Half of the ends are for the agent, the others for the person.
                watchers=end if place % 2 else (),
            )
            await store.processes.born(process.process_id, birth)
        await store.turns.answer(claim, Reply(text="left"), ("left",))
    await store.workers.end(worker.worker_id, EndedHow.STOPPED)
    await store.close()


async def _accept(store: Store) -> None:
    arrivals = [
        Arrival(
            inbound=Inbound(
                route=Route(channel=ChannelName(CHANNEL), chat=f"chat-{number}"),
                external_id=f"chat-{number}",
                sender="web",
                words=Words(text="echo left", sent_ms=time.time_ns() // 1_000_000),
            )
        )
        for number in range(SESSIONS)
    ]
    await store.inbox.accept(ChannelName(CHANNEL), arrivals, cursor=None, respond=_respond)


def _respond(command: Command, facts: SessionFacts) -> Response:
    raise NotImplementedError(command, facts)
