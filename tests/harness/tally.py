"""Results of campaigns, collected for docs/proof.md where somebody asks for them."""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "KOBOSHI_TALLY"
"""Names the file: one JSON object, with a list of results under the name of each campaign."""


def add_to_tally(campaign: str, result: Mapping[str, object]) -> None:
    """Append the result, if a file is named. Test processes that run side by side take turns."""
    name = os.environ.get(VARIABLE)
    if not name:
        return
    with Path(name).open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        sections = json.loads(file.read() or "{}")
        sections.setdefault(campaign, []).append(result)
        file.truncate(0)
        json.dump(sections, file, indent=2)
