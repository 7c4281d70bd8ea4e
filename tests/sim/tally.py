"""What the campaigns came to, for machines: one JSON file, to which every test process adds."""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

WANTS_ALL = os.environ.get("KOBOSHI_TESTS") == "all"
"""Set by `make torture`; otherwise a campaign is as long as a test may be."""
PLACE = os.environ.get("KOBOSHI_TALLY", "")
"""The file; without a name nothing is written."""


def add_to_tally(campaign: str, counts: Mapping[str, int], place: str = PLACE) -> None:
    """Add these counts to those of the campaign. Processes that do so at once wait for each
    other."""
    if not place:
        return
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        tally: dict[str, dict[str, int]] = json.loads(file.read() or "{}")
        mine = tally.setdefault(campaign, {})
        for name, count in counts.items():
            mine[name] = mine.get(name, 0) + count
        file.seek(0)
        file.truncate()
        json.dump(tally, file, indent=2, sort_keys=True)
        file.write("\n")


def read_tally(place: Path) -> dict[str, dict[str, int]]:
    """What was counted so far, by campaign."""
    tally: dict[str, dict[str, int]] = json.loads(place.read_text())
    return tally
