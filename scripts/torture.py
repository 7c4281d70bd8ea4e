"""Run every campaign in full, print how long it took, and publish the page if all of it passed.

`python -m scripts.torture [options of pytest]`; the tally is in build/tally.json, or where
KOBOSHI_TALLY says. docs/proof.md is written by nothing else, and only for a whole campaign that
passed; any other page goes to build/, and the exit code is not 0."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from koboshi import __version__
from scripts.proof_page import publish

ROOT = Path(__file__).resolve().parents[1]
CAMPAIGNS = (
    (
        *("tests/crash", "tests/faults", "tests/hostile", "tests/models", "tests/sim"),
        "tests/sqlite",
    ),
    ("-m", "systemd"),
)
"""What each run of pytest is given."""
HARMLESS = ("-n", "--dist", "-q", "-v", "-s", "-x", "--maxfail", "--tb", "--durations")
"""Options that choose no tests."""


def main(options: list[str]) -> int:
    place = Path(os.environ.get("KOBOSHI_TALLY") or ROOT / "build" / "tally.json").resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    commit, began = commit_of(ROOT), time.monotonic()
    codes = [run_campaign(campaign, options, place) for campaign in CAMPAIGNS]
    seconds = round(time.monotonic() - began)
    tally = json.loads(place.read_text()) if place.exists() else {}
    tally["run"] = [
        {
            "seconds": seconds,
            "codes": codes,
            "is_whole": is_whole(options),
            "version": __version__,
            # Code that changed meanwhile is not the code that was tried.
            "commit": commit if commit == commit_of(ROOT) else "",
            "python": platform.python_version(),
            "system": platform.system(),
            "cores": os.cpu_count(),
        }
    ]
    place.write_text(json.dumps(tally, indent=2) + "\n")
    print(f"the campaigns took {seconds} seconds; the tally is in {place}")
    return publish(tally) or max(codes)


def run_campaign(campaign: tuple[str, ...], options: list[str], place: Path) -> int:
    environment = {
        **os.environ,
        "KOBOSHI_TESTS": "all",
        "KOBOSHI_TEST_SYSTEMD": "1",
        "KOBOSHI_TALLY": str(place),
    }
    command = [sys.executable, "-m", "pytest", *campaign, *options]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
