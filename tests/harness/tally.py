"""Results of campaigns, collected on request for docs/proof.md."""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

WANTS_ALL = os.environ.get("KOBOSHI_TESTS") == "all"
"""Set by `make torture`; otherwise a fixed small portion of each campaign is tried."""
ROUND = int(os.environ.get("KOBOSHI_ROUND", "0"))
"""Set by `make torture`: which round of this portion it is. Each has seeds of its own."""
SAID_MAX = 120
"""The length of the words about a planted bug."""
VARIABLE = "KOBOSHI_TALLY"
"""Names the file: one JSON object, with a list of results under the name of each campaign."""


def add_to_tally(campaign: str, result: Mapping[str, object], place: str | None = None) -> None:
    """Append the result, if a file is named. Test processes that run side by side take turns."""
    name = os.environ.get(VARIABLE, "") if place is None else place
    if not name:
        return
    with Path(name).open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        sections = json.loads(file.read() or "{}")
        sections.setdefault(campaign, []).append(dict(result))
        file.truncate(0)
        json.dump(sections, file, indent=2)
        file.write("\n")


def found_by(bug: str, campaign: str, case: str, said: str) -> None:
    """A planted bug was noticed: by which campaign and case, and in which words."""
    add_to_tally(
        "planted bugs", {"bug": bug, "campaign": campaign, "case": case, "said": said[:SAID_MAX]}
    )


def sums_in(place: Path) -> dict[str, dict[str, int]]:
    """What was counted in all, by campaign."""
    sections: dict[str, list[dict[str, object]]] = json.loads(place.read_text())
    sums: dict[str, dict[str, int]] = {}
    for campaign, results in sections.items():
        mine = sums.setdefault(campaign, {"results": 0})
        for result in results:
            mine["results"] += 1
            for name, count in result.items():
                if isinstance(count, int) and not isinstance(count, bool):
                    mine[name] = mine.get(name, 0) + count
    return sums
