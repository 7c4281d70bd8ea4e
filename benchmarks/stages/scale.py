"""What a turn and a start cost when the file is full, relative to an empty one."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engines import OURS, Timing, run_engine
from benchmarks.fill import fill
from benchmarks.gateway import Boot, boot
from benchmarks.ours import VISITED
from benchmarks.place import DATABASE_NAME, fresh_file, say
from benchmarks.report import Measure, at_most, carry_out
from benchmarks.steady import Measured

CLIENTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    sessions: int
    turns: int

    def __str__(self) -> str:
        return f"{self.sessions:,} sessions, {self.turns:,} turns"


@dataclass(slots=True)
class Pairs:
    """Runs on a small file and on the large one, taken in turn."""

    small: list[Measured]
    large: list[Measured]

    def cost(self) -> tuple[float, ...]:
        """How much longer a turn takes in the large file."""
        pairs = zip(self.small, self.large, strict=True)
        return tuple(small.turns_per_second / large.turns_per_second for small, large in pairs)

    def cpu(self) -> tuple[float, ...]:
        pairs = zip(self.small, self.large, strict=True)
        return tuple(large.cpu_ms_per_turn / small.cpu_ms_per_turn for small, large in pairs)


def measure_scale(folder: Path, timing: Timing, size: Size) -> list[Measure]:
    large = folder / "large"
    large.mkdir()
    say(f"scale: filling a database with {size}")
    file = large / DATABASE_NAME
    fill(file, sessions=size.sessions, turns=size.turns)
    say(f"scale: it has {file.stat().st_size / 1e9:.1f} GB")
    measures = _turns(folder, file, timing, size)
    measures += carry_out("starts", lambda: _starts(folder, large, timing.rounds, size))
    shutil.rmtree(large)
    return measures


def _turns(folder: Path, large: Path, timing: Timing, size: Size) -> list[Measure]:
    new, known = Pairs([], []), Pairs([], [])
    for number in range(timing.rounds):
        say(f"scale: turns, round {number + 1} of {timing.rounds}")
        _read_through(large)
        with fresh_file(folder) as empty:
            new.small.append(run_engine(OURS, empty, timing, CLIENTS))
        new.large.append(run_engine(OURS, large, timing, CLIENTS))
        known.small.append(_run_small(folder, timing, size))
        among = ("--known", str(size.sessions), "--first", str(number))
        known.large.append(run_engine(OURS, large, timing, CLIENTS, *among))
    return [
        _ratio(f"turn in new chats, {size} / empty", new.cost(), 1.3),
        _ratio(f"turn in known chats, {size} / {VISITED} sessions", known.cost(), 1.3),
        _ratio("the same in CPU, new chats", new.cpu(), None),
        _ratio("the same in CPU, known chats", known.cpu(), None),
    ]


def _run_small(folder: Path, timing: Timing, size: Size) -> Measured:
    """On a file that holds only the chats that are visited, with as many turns each."""
    with fresh_file(folder) as file:
        fill(file, sessions=VISITED, turns=VISITED * size.turns // size.sessions)
        return run_engine(OURS, file, timing, CLIENTS, "--known", str(VISITED))


def _starts(folder: Path, large: Path, rounds: int, size: Size) -> list[Measure]:
    """Both homes were started once before, and both files are in the page cache."""
    empty = folder / "empty"
    boot(empty)
    boot(large)
    boots: list[tuple[Boot, Boot]] = []
    for number in range(rounds):
        say(f"scale: starts, round {number + 1} of {rounds}")
        boots.append((boot(empty), boot(large)))
    ready = tuple(full.ready_seconds / none.ready_seconds for none, full in boots)
    cpu = tuple(full.cpu_seconds / none.cpu_seconds for none, full in boots)
    return [
        _ratio(f"exec to ready, {size} / empty", ready, 1.5),
        _ratio("the same in CPU", cpu, None),
    ]


def _ratio(name: str, values: tuple[float, ...], most: float | None) -> Measure:
    target = None if most is None else at_most(most)
    return Measure(name=name, unit="x", values=values, target=target)


def _read_through(file: Path) -> None:
    """Bring the file into the page cache, where the small one is anyway."""
    with file.open("rb") as opened:
        while os.read(opened.fileno(), 1 << 24):
            pass
