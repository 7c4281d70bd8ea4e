"""The file of all tallies: one for each commit, and every run adds to that of its own.

A run counts into a file of its own, which is merged when it has ended. So a run that was killed or
broken off is not counted, and leaves what was there before as it was."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

UNKNOWN = "changed files"
"""What stands for a commit where the files were those of none. These never add up."""
Sections = dict[str, list[dict[str, Any]]]


def read_tallies(place: Path) -> dict[str, Sections]:
    """Every tally by its commit, the one that was added to last at the end."""
    if not place.exists():
        return {}
    found = json.loads(place.read_text(encoding="utf-8") or "{}")
    return {commit: sections for commit, sections in found.items() if isinstance(sections, dict)}


def read_run(place: Path) -> Sections:
    """What one run has counted."""
    return dict(json.loads(place.read_text(encoding="utf-8") or "{}")) if place.exists() else {}


def rounds_of(place: Path, commit: str, portion: str) -> int:
    """How many rounds of a portion this commit has had; 0 for files of none."""
    runs = read_tallies(place).get(commit, {}).get("run", []) if commit else []
    return sum(run.get("portion") == portion for run in runs)


def merge(place: Path, commit: str, counted: Sections) -> Sections:
    """Add what a run counted to the tally of its commit. Returns all of that. The file is replaced
    as a whole: one that is read meanwhile is the old or the new one."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with _alone(place):
        tallies = read_tallies(place)
        before = tallies.pop(commit, {}) if commit else {}
        if not commit:
            tallies.pop(UNKNOWN, None)
        names = dict.fromkeys((*before, *counted))
        merged = {name: [*before.get(name, ()), *counted.get(name, ())] for name in names}
        tallies[commit or UNKNOWN] = merged
        new = place.with_suffix(".new")
        new.write_text(json.dumps(tallies, indent=1) + "\n", encoding="utf-8")
        os.replace(new, place)
    return merged


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Portions that run side by side take turns."""
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
