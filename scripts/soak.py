"""A long time of ordinary work: a virtual day and a real hour, in which what the gateway holds
stays flat. `make soak`, or `python -m scripts.soak --minutes 5 --hours 6`.

The virtual day is the simulation on virtual time in one process: what the program itself has
allocated, its tasks and its open files are looked at every hour, and every promise at the end. The
real hour is a real gateway with a crowd on a fake Telegram that writes as fast as it is answered:
resident memory, descriptors, threads and the log of the database are looked at all the time. The
first quarter is for caches to fill; the last is compared with the second."""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

from benchmarks.gateway import cpu_seconds, resident_mb, serving
from benchmarks.place import BenchmarkFailed
from benchmarks.stages.telegram import CHATS, CrowdOnTelegram
from tests.sim.day import Day, a_day

Seen = TypeVar("Seen")
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build" / "soak.json"
ROUND = 2
"""Messages of each chat between two looks."""
GROWTH_MAX = 1.05
"""The last quarter to the second."""
BYTES_PER_MESSAGE_MAX = 1_000
"""Of a virtual day: what the simulated platform keeps of the words that it was given."""
SHOWN_MAX = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a real gateway holds at a moment."""

    seconds: float
    messages: int
    resident_mb: float
    files: int
    threads: int
    log_mb: float


def main(words: list[str]) -> int:
    chosen = _parser().parse_args(words)
    wrong: list[str] = []
    document: dict[str, object] = {}
    if chosen.only in (None, "virtual"):
        day = a_day(chosen.seed, chosen.hours)
        document["virtual"] = [asdict(hour) for hour in day.hours]
        print("\n".join(day_lines(day, chosen.seed)))
        wrong += wrong_with_day(day)
    if chosen.only in (None, "real"):
        looks, cpu_ms = real_work(60 * chosen.minutes)
        document["real"] = [asdict(look) for look in looks]
        print("\n".join(look_lines(looks, cpu_ms)))
        wrong += wrong_with_looks(looks)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")
    print("\n".join(wrong) or "everything stayed flat")
    return int(bool(wrong))


def real_work(seconds: float) -> tuple[list[Look], float]:
    """What was held while a crowd wrote, and the processor time of a message in milliseconds."""
    ready, over = threading.Event(), threading.Event()
    crowd = CrowdOnTelegram(ready, over)
    thread = threading.Thread(target=crowd.run)
    thread.start()
    try:
        if not ready.wait(30):
            raise BenchmarkFailed("the platform did not start")
        with (
            tempfile.TemporaryDirectory(prefix="koboshi-soak-") as folder,
            serving(Path(folder, "home"), **crowd.settings) as talk,
        ):
            talk.wait_until_ready()
            crowd.load(1)
            pid, home = talk.process.pid, Path(folder, "home")
            looks, messages, used = [_look(pid, home, 0.0, 0)], 0, cpu_seconds(pid)
            began = time.monotonic()
            while (passed := time.monotonic() - began) < seconds:
                crowd.load(ROUND)
                messages += CHATS * ROUND
                looks.append(_look(pid, home, passed, messages))
            return looks, 1000 * (cpu_seconds(pid) - used) / messages
    finally:
        over.set()
        crowd.wake()
        thread.join()


def _look(pid: int, home: Path, seconds: float, messages: int) -> Look:
    log = home / "koboshi.db-wal"
    return Look(
        seconds=seconds,
        messages=messages,
        resident_mb=resident_mb(pid),
        files=len(os.listdir(f"/proc/{pid}/fd")),
        threads=len(os.listdir(f"/proc/{pid}/task")),
        log_mb=log.stat().st_size / 1e6 if log.exists() else 0.0,
    )


def wrong_with_day(day: Day) -> list[str]:
    """Every promise that was broken, and everything that grew."""
    found = [f"virtual: {words}" for words in day.violations]
    if len(day.hours) < 2:
        return [*found, "virtual: there was too little time to see anything grow"]
    first, last = day.hours[0], day.hours[-1]
    for name, before, after in (
        ("tasks", first.tasks, last.tasks),
        ("files", first.files, last.files),
    ):
        if after > before:
            found.append(f"virtual: {before} {name} became {after}")
    if bytes_per_message(day) > BYTES_PER_MESSAGE_MAX:
        found.append(f"virtual: {bytes_per_message(day):.0f} bytes stay of every message")
    return found


def bytes_per_message(day: Day) -> float:
    """What stays in memory of each, by the growth from the first look to the last."""
    first, last = day.hours[0], day.hours[-1]
    share = (last.at_s - first.at_s) / last.at_s
    return 1_000 * (last.kilobytes - first.kilobytes) / (day.messages * share)


def wrong_with_looks(looks: list[Look]) -> list[str]:
    if len(looks) < 8:
        return ["real: there was too little time to see anything grow"]
    second, last = _quarter(looks, 1), _quarter(looks, 3)
    found = []
    memory = median(each.resident_mb for each in last) / median(each.resident_mb for each in second)
    if memory > GROWTH_MAX:
        found.append(f"real: memory grew {memory:.2f} times from the second quarter to the last")
    for name in ("files", "threads"):
        before = max(getattr(each, name) for each in looks[: len(looks) // 2])
        after = max(getattr(each, name) for each in last)
        if after > before:
            found.append(f"real: {before} {name} became {after}")
    return found


def _quarter(looks: list[Look], number: int) -> list[Look]:
    size = len(looks) // 4
    return looks[number * size : (number + 1) * size if number < 3 else None]


def day_lines(day: Day, seed: int) -> list[str]:
    lines = [f"virtual, seed {seed}: {day.messages} messages, {len(day.violations)} violations"]
    lines += [f"  {'hour':>6}{'own memory, KB':>16}{'tasks':>7}{'files':>7}"]
    for hour in _some(day.hours):
        row = f"  {hour.at_s / 3600:>6.1f}{hour.kilobytes:>16.0f}{hour.tasks:>7}{hour.files:>7}"
        lines.append(row)
    if len(day.hours) > 1:
        lines.append(f"  {bytes_per_message(day):.0f} bytes stay of every message")
    return lines


def look_lines(looks: list[Look], cpu_ms: float) -> list[str]:
    lines = [f"real: {looks[-1].messages} messages, {cpu_ms:.2f} ms of processor each"]
    lines += [f"  {'second':>8}{'messages':>10}{'MB':>8}{'files':>7}{'threads':>9}{'log, MB':>9}"]
    for look in _some(looks):
        held = f"{look.resident_mb:>8.1f}{look.files:>7}{look.threads:>9}{look.log_mb:>9.1f}"
        lines.append(f"  {look.seconds:>8.0f}{look.messages:>10}{held}")
    return lines


def _some(looks: Sequence[Seen]) -> list[Seen]:
    """The first, the last, and a few in between."""
    step = max(1, -(-len(looks) // SHOWN_MAX))
    return [*looks[:-1:step], looks[-1]] if looks else []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scripts.soak", description=__doc__)
    parser.add_argument("--only", choices=("virtual", "real"))
    parser.add_argument("--hours", type=float, default=24.0, help="virtual ones (default: 24)")
    parser.add_argument("--minutes", type=float, default=60.0, help="real ones (default: 60)")
    parser.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
