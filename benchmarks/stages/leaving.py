"""How long it takes to leave a crowd, and to come back to one: relative to a gateway at rest."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import apsw

from benchmarks.fill import CHANNEL, fill
from benchmarks.gateway import serving
from benchmarks.place import DATABASE_NAME, say
from benchmarks.report import Measure, at_most
from koboshi.kernel.sql import load_queries

RUNNING = 100
OPEN = 10_000
_PLACES = {"KOBOSHI__GATEWAY__MAX_TURNS": str(RUNNING), "KOBOSHI__GATEWAY__DRAIN_SECONDS": "0"}
"""The drain does not wait for steps of a minute: it is measured how fast turns are given back."""
_WORK = 'script: [{"text": "done", "sleep_ms": 600000}]'


def measure_leaving(folder: Path, rounds: int) -> list[Measure]:
    leaving, coming = [], []
    crowd = _crowded(folder)
    for number in range(rounds):
        say(f"leaving: round {number + 1} of {rounds}")
        idle = _stop_seconds(folder / f"idle-{number}", turns=0)
        leaving.append((idle, _stop_seconds(folder / f"running-{number}", turns=RUNNING)))
        empty = _first_message_seconds(folder / f"empty-{number}")
        home = folder / f"crowd-{number}"
        shutil.copytree(crowd, home)
        coming.append((empty, _first_message_seconds(home)))
        shutil.rmtree(home)
    return [
        *_pair(f"SIGTERM to exit, {RUNNING} running turns", leaving, 4),
        *_pair(f"exec to first accepted, {OPEN:,} open turns", coming, 1.5),
    ]


def _pair(name: str, rounds: Sequence[tuple[float, float]], most: float) -> list[Measure]:
    ratios = tuple(much / little for little, much in rounds)
    seconds = tuple(much for _, much in rounds)
    return [
        Measure(name=name, unit="s", values=seconds),
        Measure(name=f"{name} / none", unit="x", values=ratios, target=at_most(most)),
    ]


def _stop_seconds(home: Path, *, turns: int) -> float:
    """From SIGTERM to the end of a gateway in which so many turns run."""
    with serving(home, **_PLACES) as talk:
        talk.wait_until_ready()
        for number in range(turns):
            talk.post(f"chat-{number}", _WORK)
        talk.wait_until_running(turns)
        asked = time.monotonic()
        talk.stop()
        return time.monotonic() - asked


def _first_message_seconds(home: Path) -> float:
    """From exec until a new message is on disk, whatever else there is to do."""
    with serving(home, **_PLACES) as talk:
        talk.wait_until_accepted("person", "echo hello")
        seconds = time.monotonic() - talk.began
        talk.kill()
        return seconds


def _crowded(folder: Path) -> Path:
    """A home whose gateway was killed while each of many sessions had a turn at work."""
    home = folder / "crowd"
    home.mkdir(mode=0o700)
    say(f"leaving: filling a database with {OPEN:,} open turns")
    file = home / DATABASE_NAME
    fill(file, sessions=OPEN, turns=OPEN)
    connection = apsw.Connection(str(file))
    now_ms = time.time_ns() // 1_000_000
    queries = load_queries("benchmarks", "open.sql")
    with connection:
        for statement in queries.values():
            connection.execute(statement, {"now": now_ms, "channel": CHANNEL, "turns": OPEN})
    connection.close()
    return home
