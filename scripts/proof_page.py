"""Write docs/proof.md from a tally of the campaigns: `KOBOSHI_TALLY=tally.json make torture` makes
one, and `python scripts/proof_page.py tally.json` the page."""

import json
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "proof.md"
Result = Mapping[str, object]

HEAD = """\
# Proof

What was killed where, how often, and what came of it. This page is written by
`scripts/proof_page.py` from the tally of a run of the campaigns; nobody edits it.
"""

FOOT = """\
## See for yourself

| command | does |
|---|---|
| `koboshi torture` | kills throw-away gateways while people talk to them, and prints the tally |
| `make test` | a fixed portion of every campaign |
| `KOBOSHI_TALLY=tally.json make torture` | all of every campaign, and the figures of this page |
| `python scripts/proof_page.py tally.json` | this page |

A seed plans the same kills and messages again (`KOBOSHI_SEED=…`, `koboshi torture --seed …`); what
the machine makes of their timing is its own. Bugs that are planted on purpose must be found by at
least one campaign (`tests/sim/test_planted_bugs.py`), and every fault campaign has a doctored
subject that must be seen to fail.
"""


def page(tally: Mapping[str, Sequence[Result]]) -> str:
    """The page for what was counted."""
    sections = [HEAD, _machine(), *_kills(tally.get("random kills", ()))]
    for campaign in ("simulation", "state machine"):
        sections += _counted(campaign, tally.get(campaign, ()))
    sections += _faults("Faults", tally.get("faults", ()))
    sections += _faults("Doctored on purpose", tally.get("faults, doctored on purpose", ()))
    return "\n".join([*sections, FOOT])


def _machine() -> str:
    return f"Seen with Python {platform.python_version()} on {platform.system()}.\n"


def _kills(results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    places: Counter[str] = Counter()
    for result in results:
        by_place = result.get("kills_by_place", {})
        assert isinstance(by_place, dict)
        places.update(by_place)
    counted = "lives messages answers commands jobs_reported lost doubled ran_twice"
    names = counted.split()
    rows = [(name.replace("_", " "), _sum(results, name)) for name in names]
    return [
        "## Kills of the real process, with people at it\n",
        table(("", "count"), [*rows, ("kills", sum(places.values()))]),
        table(("killed", "times"), places.most_common()),
    ]


def _counted(campaign: str, results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    names = dict.fromkeys(name for result in results for name in result)
    rows = [(name, _sum(results, name)) for name in names]
    return [f"## {campaign.capitalize()}\n", table(("", "count"), rows)]


def _faults(title: str, results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    rows = [(each["campaign"], each["cases"], each["violations"]) for each in results]
    return [f"## {title}\n", table(("campaign", "cases", "violations"), sorted(rows, key=str))]


def _sum(results: Sequence[Result], name: str) -> int:
    counts = (result.get(name, 0) for result in results)
    return sum(count for count in counts if isinstance(count, int))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(Path(sys.argv[1]).read_text())), encoding="utf-8")
    print(f"written: {PAGE.name}")
