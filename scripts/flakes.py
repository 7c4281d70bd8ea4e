"""Repeat the process tests in any order, on a quiet machine and on a busy one, and count.

`make flakes` runs `python -m scripts.flakes`; ROUNDS=n, LOAD=quiet|loaded|both and ARGS="…" (for
pytest) are passed on. Each round has a seed, which is printed and gives the order of the tests. In
a loaded round neighbours spin on all cores; every second one leaves the tests one core, which they
share with a spinning neighbour.

The counts of all rounds add up in build/flakes.json, by commit and test. This module is the plug-in
of pytest that shuffles and counts, too.
"""

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TALLY = ROOT / "build" / "flakes.json"
PROCESS_TESTS = tuple(
    f"tests/{name}"
    for name in "crash cli faults channels runner browser hostile deploy service dashboard".split()
)
SEED, REPORT = "KOBOSHI_FLAKES_SEED", "KOBOSHI_FLAKES_REPORT"
NEIGHBOURS_PER_CORE = 2
SPIN_SECONDS_MAX = 4 * 3_600
OUTPUT_MAX = 4_000
SHOWN_MAX = 10

_SPIN = """
import os, sys, time
parent, limit = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
while os.getppid() == parent and time.monotonic() < limit:
    for _ in range(1_000_000):
        pass
"""


@dataclass(frozen=True, slots=True)
class Load:
    """Who else wants the processor while a round runs."""

    name: str
    neighbours: int = 0
    core: int | None = None
    """The only core that tests and neighbours may use; None for all."""

    @property
    def prefix(self) -> list[str]:
        return [] if self.core is None else ["taskset", "--cpu-list", str(self.core)]


def loads(wanted: str, cores: int, rounds: int) -> list[Load]:
    """The loads of all rounds, in their order: so many quiet rounds and so many loaded ones."""
    quiet = [Load("quiet")] * rounds
    busy = [Load("busy neighbours", cores * NEIGHBOURS_PER_CORE), Load("one core", 1, core=0)]
    loaded = [busy[number % len(busy)] for number in range(rounds)]
    return {"quiet": quiet, "loaded": loaded, "both": [*quiet, *loaded]}[wanted]


@contextmanager
def neighbours(load: Load) -> Iterator[None]:
    """Processes that spin as long as the block lasts, and end with this process, too."""
    spin = [*load.prefix, sys.executable, "-c", _SPIN, str(os.getpid()), str(SPIN_SECONDS_MAX)]
    started = [subprocess.Popen(spin) for _ in range(load.neighbours)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def run_round(load: Load, seed: int, options: Sequence[str], report: Path) -> list[dict[str, Any]]:
    """Run the tests once. Returns what was told of each."""
    report.unlink(missing_ok=True)
    # Variables of a test run that this one is a part of would make its processes take part in it.
    outside = {name: value for name, value in os.environ.items() if "PYTEST_" not in name}
    environment = {**outside, SEED: str(seed), REPORT: str(report)}
    command = [*load.prefix, sys.executable, "-m", "pytest", "-q", "-p", "scripts.flakes", *options]
    with neighbours(load):
        subprocess.run(command, cwd=ROOT, env=environment, check=False)
    lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    return [json.loads(line) for line in lines]


def add_round(
    tally: dict[str, Any], load: Load, seed: int, told: Sequence[dict[str, Any]], seconds: float
) -> None:
    """Add one round to the counts of a commit."""
    failed = sorted({each["test"] for each in told if each["failed"]})
    about = {"load": load.name, "seed": seed, "seconds": round(seconds), "failed": failed}
    tally.setdefault("rounds", []).append(about)
    tests = tally.setdefault("tests", {})
    for each in told:
        counted = tests.setdefault(each["test"], {"runs": 0, "failures": 0, "seconds": 0.0})
        counted["runs"] += each["is_call"]
        counted["failures"] += each["failed"]
        counted["seconds"] = round(counted["seconds"] + each["seconds"], 2)
        if each["failed"]:
            first = {"seed": seed, "load": load.name, "output": each["output"]}
            counted.setdefault("first_failure", first)


def words_of(tally: dict[str, Any]) -> str:
    """The counts of a commit, those that failed first."""
    rounds, tests = tally.get("rounds", []), tally.get("tests", {})
    by_load: dict[str, list[int]] = {}
    for each in rounds:
        counts = by_load.setdefault(each["load"], [0, 0])
        counts[0] += 1
        counts[1] += bool(each["failed"])
    lines = [f"{name}: {bad} of {all_} rounds failed" for name, (all_, bad) in by_load.items()]
    lines += ["", "    runs failures  seconds"]
    by_seconds = sorted(tests, key=lambda name: -tests[name]["seconds"])
    flaky = [name for name in by_seconds if tests[name]["failures"]]
    for name in [*flaky, *[each for each in by_seconds if each not in flaky][:SHOWN_MAX]]:
        told = tests[name]
        lines.append(f"{told['runs']:8} {told['failures']:8} {told['seconds']:8.1f}  {name}")
    for name in flaky:
        first = tests[name]["first_failure"]
        lines += ["", f"{name}, first in a round with seed {first['seed']}, {first['load']}:"]
        lines.append(first["output"])
    runs = sum(each["runs"] for each in tests.values())
    failures = sum(each["failures"] for each in tests.values())
    return "\n".join([*lines, "", f"{len(rounds)} rounds, {runs} runs, {failures} failures"])


def commit() -> str:
    """The commit that is tried, with a mark if the files differ from it."""

    def git(*arguments: str) -> str:
        told = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
        return told.stdout.decode().strip()

    changed = "+changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return f"{git('rev-parse', 'HEAD') or 'unknown'}{changed}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--load", choices=("quiet", "loaded", "both"), default="both")
    parser.add_argument("--workers", default="4")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("options", nargs="*", help="options of pytest, and the tests to run")
    told = parser.parse_args(arguments)
    options = [word for words in told.options for word in shlex.split(words)]
    if not any(Path(ROOT, word.partition("::")[0]).exists() for word in options):
        options = [*PROCESS_TESTS, *options]
    options += ["-n", told.workers, "--dist=worksteal"]
    TALLY.parent.mkdir(exist_ok=True)
    report = TALLY.with_name(f"flakes.{os.getpid()}.jsonl")
    name = commit()
    try:
        for number, load in enumerate(loads(told.load, os.cpu_count() or 2, told.rounds)):
            seed = told.seed + number
            print(f"round {number + 1}: {load.name}, seed {seed}", flush=True)
            began = time.monotonic()
            seen = run_round(load, seed, options, report)
            everything = json.loads(TALLY.read_text()) if TALLY.exists() else {}
            add_round(everything.setdefault(name, {}), load, seed, seen, time.monotonic() - began)
            TALLY.write_text(json.dumps(everything, indent=1) + "\n")
    except KeyboardInterrupt:
        print("ended early", flush=True)
    finally:
        report.unlink(missing_ok=True)
    tally = json.loads(TALLY.read_text()).get(name, {}) if TALLY.exists() else {}
    print(f"\n{name}\n{words_of(tally)}")
    return int(any(each["failed"] for each in tally.get("rounds", [])))


# As a plug-in of pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle the files, and the tests in each: what a file shares is made once in any order."""
    dice = random.Random(int(os.environ.get(SEED, "0")))
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    groups = list(files.values())
    dice.shuffle(groups)
    for group in groups:
        dice.shuffle(group)
    items[:] = [item for group in groups for item in group]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down what happened, once: workers of xdist hand their reports on."""
    is_told = report.when == "call" or report.failed
    if "PYTEST_XDIST_WORKER" in os.environ or not is_told or REPORT not in os.environ:
        return
    line = {
        "test": report.nodeid,
        "is_call": report.when == "call",
        "failed": report.failed,
        "seconds": round(report.duration, 2),
        "output": report.longreprtext[-OUTPUT_MAX:] if report.failed else "",
    }
    with Path(os.environ[REPORT]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
