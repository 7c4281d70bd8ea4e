"""The page about the campaigns, from their tally: `make torture` makes one in build/tally.json and
then publishes the page. `python -m scripts.proof_page tally.json` does the second part again.

docs/proof.md is written for a whole campaign that passed, and for nothing else. The page of any
other tally goes to build/proof.md, and the exit code is not 0."""

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from scripts.proof_words import (
    CRASHES,
    FAULTS,
    FOOT,
    HEAD,
    MACHINE,
    RANDOM,
    SIMULATION,
    UNDONE,
    UNPROVEN,
)

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "proof.md"
DRAFT = ROOT / "build" / "proof.md"
Result = Mapping[str, object]
Tally = Mapping[str, Sequence[Result]]

ONE_OF_MANY = re.compile(r",? (part \d+ of \d+|change \d+|seed \d+)$")
"""What tells a case from others of its kind."""
COUNTED = (
    *("lives", "kills", "messages", "posts repeated", "answers", "ends told", "commands"),
    *("jobs reported", "platform messages", "platform answers", "platform copies labelled"),
    *("rights taken", "runners killed", "lives with few files", "lives that ran short"),
    *(
        "lives that gave out",
        "wrong clocks",
        "clock jumps",
        "model outages",
        "lost",
        "doubled",
        "commands run twice",
    ),
)
FIELDS = {"commands run twice": "ran_twice"}
NEEDED = (
    *("crash points", "random kills", "faults", "state machine", "simulation"),
    *("planted bugs", "faults, doctored on purpose"),
)
"""What a whole campaign has tried."""
WANTED = "faults, doctored on purpose"
"""Where a violation is what must be found."""


def publish(tally: Tally, page_file: Path = PAGE, draft_file: Path = DRAFT) -> int:
    """Write the page where it belongs, and say so. Returns the exit code: 0 if it is published."""
    reasons = why_not_published(tally)
    file = draft_file if reasons else page_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page(tally), encoding="utf-8")
    if not reasons:
        print(f"the page is published: {file}")
        return 0
    print(f"the page is not published, and is in {file}: {'; '.join(reasons)}", file=sys.stderr)
    return 1


def why_not_published(tally: Tally) -> list[str]:
    """What keeps the tally from being a proof; nothing if it is one."""
    reasons = [f"nothing is known of {name}" for name in NEEDED if not tally.get(name)]
    for name, results in tally.items():
        broken = 0 if name in (WANTED, "run") else sum(_violations(each) for each in results)
        reasons += [f"{name}: {broken} violations"] if broken else []
    runs = tally.get("run", ())
    if len(runs) != 1:
        return [*reasons, "it is not the tally of one run"]
    codes = runs[0].get("codes")
    if not isinstance(codes, list) or not codes or any(code != 0 for code in codes):
        reasons.append(f"the campaigns ended with {codes}")
    if runs[0].get("is_whole") is not True:
        reasons.append("only some of the tests were chosen")
    if not runs[0].get("commit") or not runs[0].get("version"):
        reasons.append("the files were not those of one commit")
    return reasons


def _violations(result: Result) -> int:
    found = result.get("violations", 0)
    return len(found) if isinstance(found, list) else _number(found)


def unproven_page() -> str:
    """The page of a version that no published campaign has tried."""
    return "\n".join([HEAD, UNPROVEN, FOOT])


def page(tally: Tally) -> str:
    """The page for what was counted."""
    sections = [HEAD, _run(tally.get("run", ()))]
    sections += _crashes(tally.get("crash points", ()))
    sections += _random_kills(tally.get("random kills", ()))
    sections += _faults(tally.get("faults", ()))
    sections += _counted("The store against a reference", MACHINE, tally.get("state machine", ()))
    sections += _counted("The whole gateway, simulated", SIMULATION, tally.get("simulation", ()))
    sections += _found(tally)
    return "\n".join([*sections, FOOT])


def _run(results: Sequence[Result]) -> str:
    return "".join(
        f"Koboshi {each['version']}, commit {each['commit'] or 'unknown'}, with Python "
        f"{each['python']} on {each['system']}, {each['cores']} cores: all of it took "
        f"{each['seconds']} seconds, and {_ended(each['codes'])}.\n"
        for each in results[-1:]
    )


def _ended(codes: object) -> str:
    is_well = isinstance(codes, list) and codes and all(code == 0 for code in codes)
    return "ended well" if is_well else f"ended with {codes}"


def _crashes(results: Sequence[Result]) -> list[str]:
    """By the verb and its moment, and by the story."""
    if not results:
        return []
    places: Counter[str] = Counter()
    stories: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        at = result["at"]
        assert isinstance(at, list)
        places.update(":".join(end.split(":")[:2]) for end in at)
        story = stories[str(result["story"])]
        story.update(cases=1, kills=len(at), violations=_number(result["violations"]))
    verbs = sorted({place.split(":")[0] for place in places})
    killed = [(verb, places[f"{verb}:before"], places[f"{verb}:after"]) for verb in verbs]
    told = [(name, *story_counts(counts)) for name, counts in sorted(stories.items())]
    return [
        CRASHES,
        table(("killed at", "before", "after"), [*killed, _totals(killed)]),
        table(("story", "cases", "kills", "violations"), [*told, _totals(told)]),
    ]


def story_counts(counts: Mapping[str, int]) -> tuple[int, int, int]:
    return counts["cases"], counts["kills"], counts["violations"]


def _random_kills(results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    places: Counter[str] = Counter()
    mishaps: Counter[str] = Counter()
    for result in results:
        by_place = result["kills_by_place"]
        assert isinstance(by_place, dict)
        places.update(by_place)
        happened = result.get("platform_mishaps", {})
        assert isinstance(happened, dict)
        mishaps.update(happened)
    rows = [(name, _sum(results, FIELDS.get(name, name.replace(" ", "_")))) for name in COUNTED]
    violations = sum(len(each["violations"]) for each in results)  # type: ignore[arg-type, misc]
    seconds = sum(float(str(each["seconds"])) for each in results)
    rate = round(60 * _sum(results, "kills") / seconds) if seconds else 0
    rows += [("violations of any kind", violations), ("kills a minute, in one campaign", rate)]
    again = [(each["seed"], f"`{each['repeat']}`") for each in results]
    return [
        RANDOM,
        table(("", "count"), rows),
        table(("killed", "times"), places.most_common()),
        table(("call of the platform: what happened to it", "times"), mishaps.most_common()),
        table(("seed", "the same kills and messages, planned again"), again),
    ]


def _counted(title: str, words: str, results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    names = sorted({name for result in results for name in result}, key=_figures_first)
    rows = [(name, _sum(results, name)) for name in names]
    return [f"## {title}\n", words, table(("", "count"), rows)]


def _figures_first(name: str) -> tuple[bool, str]:
    return name not in ("seeds", "examples", "violations"), name


def _faults(results: Sequence[Result]) -> list[str]:
    """Cases of one kind in one line."""
    if not results:
        return []
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for each in results:
        kind = kinds[ONE_OF_MANY.sub("", str(each["campaign"]))]
        kind.update({name: _number(each[name]) for name in ("cases", "not_reached", "violations")})
    rows = [
        (name, counts["cases"], counts["not_reached"], counts["violations"])
        for name, counts in sorted(kinds.items())
    ]
    header = ("what fails", "cases", "not come by", "violations")
    return [FAULTS, table(header, [*rows, _totals(rows)])]


def _found(tally: Tally) -> list[str]:
    """What was wrong on purpose, and who noticed."""
    bugs = tally.get("planted bugs", ())
    doctored = tally.get("faults, doctored on purpose", ())
    rows = [(each["bug"], each["campaign"], each["case"], _cell(each["said"])) for each in bugs]
    controls = [
        (str(each["campaign"]).removeprefix("gateway: "), each["cases"], each["violations"])
        for each in doctored
    ]
    shown = [UNDONE] if rows or controls else []
    if rows:
        header = ("planted bug", "found by", "case", "what it said")
        shown.append(table(header, sorted(rows, key=str)))
    if controls:
        wanted = ("doctored subject", "cases", "violations, wanted")
        shown.append(table(wanted, sorted(controls, key=str)))
    return shown


def _cell(said: object) -> str:
    """Words that fit into a table."""
    return f"`{' '.join(str(said).split())[:70]}`".replace("|", "/")


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _sum(results: Sequence[Result], name: str) -> int:
    counts = (result.get(name, 0) for result in results)
    return sum(count for count in counts if isinstance(count, int))


def _totals(rows: Sequence[Sequence[object]]) -> tuple[object, ...]:
    columns = list(zip(*rows, strict=True))[1:]
    return ("**all**", *(sum(_number(count) for count in column) for column in columns))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    sys.exit(publish(json.loads(Path(sys.argv[1]).read_text())))
