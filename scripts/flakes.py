"""Repeat the process tests in any order, on a quiet machine and on a busy one, and count.

`make flakes` runs `python -m scripts.flakes`; ROUNDS=n, LOAD=quiet|loaded|both and ARGS="…" (for
pytest) are passed on. Each round has a seed, which is printed and gives the order of the tests. In
a loaded round neighbours spin on all cores; every second one leaves the tests one core, which they
share with a spinning neighbour. A quiet round during which other programs took the processor is
counted as one with others at work.

A round is made cheap so that thirty of them are affordable:

* Of the cases of one parametrised test a round takes four, chosen by its seed. They repeat one
  story, so a race in it meets some of them.
* The first round of some code sees which files start a process or speak over a socket. Later rounds
  leave the other files out: their tests run in one process, on virtual time or on none.

The counts of all rounds add up in build/flakes.json, by test, as long as `src`, `tests` and the
pinned requirements stay as they are. So the tally says how many runs each test had. This module is
the plug-in of pytest that chooses, shuffles and counts, too; the words are in
`scripts/flakes_words.py`.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scripts.flakes_words import words_of

ROOT = Path(__file__).resolve().parents[1]
TALLY = ROOT / "build" / "flakes.json"
TESTS = "tests"
"""What is looked through for tests that are not alone in their process."""
SEED, REPORT = "KOBOSHI_FLAKES_SEED", "KOBOSHI_FLAKES_REPORT"
CALM = "KOBOSHI_FLAKES_CALM"
"""Files to leave out, one in a line: no test in them starts a process or uses a socket."""
CODE = ("src", "tests", "pyproject.toml", "requirements")
"""What a flake can come from. Rounds of the same code add up."""
FAMILY_MAX = 4
"""Cases of one parametrised test in a round."""
OTHERS_MAX = 0.1
"""The share of the processor that other programs may take in a quiet round."""
RACING = {
    *("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"),
    *("socket.bind", "socket.connect"),
}
"""Events after which a test is not alone in its process."""
NEIGHBOURS_PER_CORE = 2
SPIN_SECONDS_MAX = 4 * 3_600
OUTPUT_MAX = 4_000

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


def run_round(
    load: Load,
    seed: int,
    options: Sequence[str],
    report: Path,
    calm: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Run the tests once, without those of calm files. Returns what was told of each."""
    report.unlink(missing_ok=True)
    # Variables of a test run that this one is a part of would make its processes take part in it.
    outside = {name: value for name, value in os.environ.items() if "PYTEST_" not in name}
    environment = {**outside, SEED: str(seed), REPORT: str(report), CALM: "\n".join(calm)}
    command = [*load.prefix, sys.executable, "-m", "pytest", "-q", "-p", "scripts.flakes", *options]
    with neighbours(load):
        subprocess.run(command, cwd=ROOT, env=environment, check=False)
    lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    return [json.loads(line) for line in lines]


def add_round(
    tally: dict[str, Any], load: str, seed: int, told: Sequence[dict[str, Any]], seconds: float
) -> None:
    """Add one round to the counts of some code."""
    failed = sorted({each["test"] for each in told if each["failed"]})
    about = {"load": load, "seed": seed, "seconds": round(seconds), "failed": failed}
    tally.setdefault("rounds", []).append(about)
    tests, files = tally.setdefault("tests", {}), tally.setdefault("files", {})
    for each in told:
        counted = tests.setdefault(each["test"], {"runs": 0, "failures": 0, "seconds": 0.0})
        counted["runs"] += each["is_call"]
        counted["failures"] += each["failed"]
        counted["seconds"] = round(counted["seconds"] + each["seconds"], 2)
        if each["failed"]:
            first = {"seed": seed, "load": load, "output": each["output"]}
            counted.setdefault("first_failure", first)
        file = each["test"].partition("::")[0]
        files[file] = files.get(file, False) or each["races"]


def calm_files(tally: dict[str, Any]) -> list[str]:
    """Files in which no test was seen to start a process or to use a socket."""
    return sorted(file for file, races in tally.get("files", {}).items() if not races)


def code() -> str:
    """A name for the code that is tried: documents may change between two rounds."""

    def git(*arguments: str) -> str:
        told = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
        return told.stdout.decode().strip()

    trees = git("rev-parse", *(f"HEAD:{name}" for name in CODE))
    changed = git("status", "--porcelain", "--untracked-files=no", "--", *CODE)
    name = hashlib.sha256(trees.encode()).hexdigest()[:16] if trees else "unknown"
    return f"{name}+changes" if changed else name


def busy_seconds() -> float:
    """How long the cores of this machine have worked since it started; 0 where it is not told."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return 0.0
    user, nice, system, _idle, _waits, *interrupts = [int(word) for word in first.split()[1:8]]
    return float(user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """How long processes of ours that have ended have worked."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def load_seen(load: Load, others: float, seconds: float, cores: int) -> str:
    """What the round is counted as, after others have worked for so long beside it."""
    is_alone = others <= OTHERS_MAX * seconds * cores
    return load.name if load.neighbours or is_alone else "others at work"


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
        options = [TESTS, *options]
    options += ["-n", told.workers, "--dist=worksteal"]
    TALLY.parent.mkdir(exist_ok=True)
    report = TALLY.with_name(f"flakes.{os.getpid()}.jsonl")
    name, cores = code(), os.cpu_count() or 2
    try:
        for number, load in enumerate(loads(told.load, cores, told.rounds)):
            seed = told.seed + number
            print(f"round {number + 1}: {load.name}, seed {seed}", flush=True)
            calm = calm_files(_tally_of(name))
            began, others = time.monotonic(), busy_seconds() - own_seconds()
            seen = run_round(load, seed, options, report, calm)
            seconds = time.monotonic() - began
            others = busy_seconds() - own_seconds() - others
            if code() != name:
                print("the code was changed meanwhile: the round is not counted", flush=True)
                return 1
            everything = json.loads(TALLY.read_text()) if TALLY.exists() else {}
            tally = everything.setdefault(name, {})
            add_round(tally, load_seen(load, others, seconds, cores), seed, seen, seconds)
            TALLY.write_text(json.dumps(everything, indent=1) + "\n")
    except KeyboardInterrupt:
        print("ended early", flush=True)
    finally:
        report.unlink(missing_ok=True)
    tally = _tally_of(name)
    print(f"\n{name}\n{words_of(tally)}")
    return int(any(each["failed"] for each in tally.get("rounds", [])))


def _tally_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TALLY.read_text()).get(name, {}) if TALLY.exists() else {}
    return found


# As a plug-in of pytest

_races = False
"""Whether the present test is not alone in its process."""


def _listen(event: str, _: object) -> None:
    global _races
    _races = _races or event in RACING


def pytest_configure() -> None:
    sys.addaudithook(_listen)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    global _races
    _races = False
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What was seen so far goes with each report, out of the workers of xdist, too."""
    report = yield
    report.user_properties.append(("races", _races))
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests, then shuffle the files, and the tests in each: what a file shares is made
    once in any order."""
    dice = random.Random(int(os.environ.get(SEED, "0")))
    calm = set(os.environ.get(CALM, "").splitlines())
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    files: dict[Path, list[pytest.Item]] = {}
    for name, family in families.items():
        if name.partition("::")[0] not in calm:
            chosen = dice.sample(family, min(len(family), FAMILY_MAX))
            files.setdefault(family[0].path, []).extend(chosen)
    groups = list(files.values())
    dice.shuffle(groups)
    for group in groups:
        dice.shuffle(group)
    taken = [item for group in groups for item in group]
    left = set(items) - set(taken)
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = taken


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down what happened, once: workers of xdist hand their reports on."""
    is_told = report.when == "call" or report.failed
    if "PYTEST_XDIST_WORKER" in os.environ or not is_told or REPORT not in os.environ:
        return
    line = {
        "test": report.nodeid,
        "is_call": report.when == "call",
        "failed": report.failed,
        "races": dict(report.user_properties).get("races", True),
        "seconds": round(report.duration, 2),
        "output": report.longreprtext[-OUTPUT_MAX:] if report.failed else "",
    }
    with Path(os.environ[REPORT]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
