"""Run the campaigns, a portion or all of them, add what they counted to the tally of the commit,
and publish the page when all of it passed.

`python -m scripts.torture [--portion NAME] [--rounds N] [options of pytest]`. The tallies are in
build/tally.json, or where KOBOSHI_TALLY says; see scripts/tally_file.py. docs/proof.md is written
by nothing else, and only for a commit that has passed every portion; any other page goes to build/.
The exit code is not 0 where a portion failed, or where all of them ran and the page was not
published."""

import argparse
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from koboshi import __version__
from scripts.portions import GOALS, NAMES, PORTIONS, Portion, Tally, upper_bound
from scripts.proof_page import counted_for, publish
from scripts.tally_file import merge, read_run, rounds_of

ROOT = Path(__file__).resolve().parents[1]
HARMLESS = ("-n", "--dist", "-q", "-v", "-s", "-x", "--maxfail", "--tb", "--durations")
"""Options that choose no tests."""
INTERRUPTED = 2
"""How pytest ends that was broken off."""


def main(words: list[str]) -> int:
    chosen, options = _parser().parse_known_args(words)
    place = Path(os.environ.get("KOBOSHI_TALLY") or ROOT / "build" / "tally.json").resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    portions = [each for each in PORTIONS if chosen.portion in (None, each.name)]
    codes = [0]
    tally: Tally = {}
    for _ in range(chosen.rounds):
        for portion in portions:
            code, tally = run_portion(portion, options, place)
            codes.append(code)
            if code == INTERRUPTED:
                return code
    print("\n".join(summary(tally)))
    print(f"the tally is in {place}")
    is_published = publish(tally) == 0
    # A portion alone is no proof, and no failure either.
    return max(codes) or int(not is_published and chosen.portion is None)


def run_portion(portion: Portion, options: list[str], place: Path) -> tuple[int, Tally]:
    """One round of it. Returns how it ended, and the tally of the commit; what was broken off
    counts for nothing."""
    commit = commit_of(ROOT)
    number = rounds_of(place, commit, portion.name)
    counted = place.with_name(f"{place.stem}-{portion.name}-{os.getpid()}.json")
    print(f"torture: {portion.name}, round {number + 1} of this commit", flush=True)
    began = time.monotonic()
    try:
        code = run_campaign(portion.chosen, options, counted, number)
        if code == INTERRUPTED:
            return code, {}
        run = {
            "portion": portion.name,
            "seconds": round(time.monotonic() - began),
            "code": code,
            "is_whole": is_whole(options),
            "version": __version__,
            # Code that changed meanwhile is not the code that was tried.
            "commit": commit if commit == commit_of(ROOT) else "",
            "python": platform.python_version(),
            "system": platform.system(),
            "cores": os.cpu_count(),
        }
        return code, merge(place, str(run["commit"]), {**read_run(counted), "run": [run]})
    finally:
        counted.unlink(missing_ok=True)


def run_campaign(chosen: tuple[str, ...], options: list[str], counted: Path, number: int) -> int:
    environment = {
        **os.environ,
        "KOBOSHI_TESTS": "all",
        "KOBOSHI_TEST_SYSTEMD": "1",
        "KOBOSHI_TALLY": str(counted),
        "KOBOSHI_ROUND": str(number),
    }
    command = [sys.executable, "-m", "pytest", *chosen, *options]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def summary(tally: Tally) -> list[str]:
    """How far this commit is."""
    lines = ["this commit so far:"]
    for goal in GOALS:
        done = counted_for(goal, tally)
        bound = upper_bound(done.violations, done.cases)
        tried = f"{done.cases:,} of {goal.wanted:,}, {done.violations} violations"
        lines.append(f"  {goal.words:<46}{tried}, {done.hours:.1f} h, below {bound:.1e} at 95 %")
    return lines


def is_whole(options: list[str]) -> bool:
    """Whether the options leave no test out. What is not known to be harmless may."""
    names = [option.partition("=")[0] for option in options]
    return all(
        name in HARMLESS or (name.isdigit() and before in HARMLESS)
        for before, name in zip(["", *names], names, strict=False)
    )


def commit_of(folder: Path) -> str:
    """The commit whose files these are; empty where some were changed since, or none is known."""
    try:
        said = [
            subprocess.run(
                ["git", *words], cwd=folder, capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno"))
        ]
    except (OSError, subprocess.CalledProcessError):
        return ""
    head, changes = said
    return "" if changes else head


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scripts.torture", allow_abbrev=False)
    parser.add_argument("--portion", choices=NAMES, help="only this one")
    parser.add_argument("--rounds", type=int, default=1, help="so many times, with other seeds")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
