"""The page about the campaigns, from the tally of a commit: `make torture` adds to the one in
build/tally.json and then publishes the page. `python -m scripts.proof_page tally.json` does the
second part again, for the commit that was tried last.

docs/proof.md is written for a commit that has passed every portion, and for nothing else. The page
of any other tally goes to build/proof.md, and the exit code is not 0."""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.portions import GOALS, NAMES, Goal, Result, Tally, upper_bound
from scripts.proof_words import (
    AMOUNT,
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
from scripts.tally_file import read_tallies

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "proof.md"
DRAFT = ROOT / "build" / "proof.md"

ONE_OF_MANY = re.compile(r",? (part \d+ of \d+|change \d+|seed \d+)$")
"""What tells a case from others of its kind."""
COUNTED = (
    *(
        "lives",
        "cold starts",
        "kills",
        "messages",
        "posts repeated",
        "answers",
        "ends told",
        "commands",
    ),
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
ON_SERVER = "Batches, keys and dialect of that store, killed at the same moments.\n"
WANTED = "faults, doctored on purpose"
"""Where a violation is what must be found."""
SECONDS_PER_HOUR = 3_600


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
    for portion in NAMES:
        mine = [run for run in runs if run.get("portion") == portion]
        if not any(run.get("is_whole") is True for run in mine):
            reasons.append(f"the portion {portion} was not run as a whole")
        failed = [run.get("code") for run in mine if run.get("code") != 0]
        reasons += [f"the portion {portion} ended with {failed}"] if failed else []
    commits = {run.get("commit") for run in runs}
    if len(commits) != 1 or not all(commits) or not all(run.get("version") for run in runs):
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
    sections = [HEAD, _run(tally.get("run", ())), *_amount(tally)]
    sections += _crashes(tally.get("crash points", ()))
    sections += _random_kills(tally.get("random kills", ()))
    sections += _faults(tally.get("faults", ()))
    sections += _counted("The store against a reference", MACHINE, tally.get("state machine", ()))
    sections += _counted("The whole gateway, simulated", SIMULATION, tally.get("simulation", ()))
    on_server = tally.get("simulation on PostgreSQL", ())
    sections += _counted("The same with its rows on PostgreSQL", ON_SERVER, on_server)
    sections += _found(tally)
    return "\n".join([*sections, FOOT])


def _run(results: Sequence[Result]) -> str:
    if not results:
        return ""
    last = results[-1]
    hours = sum(_number(each["seconds"]) for each in results) / SECONDS_PER_HOUR
    return (
        f"Koboshi {last['version']}, commit {last['commit'] or 'unknown'}, with Python "
        f"{last['python']} on {last['system']}, {last['cores']} cores: {len(results)} runs of "
        f"{len({each['portion'] for each in results})} portions took {hours:.1f} hours, and "
        f"{_ended(results)}.\n"
    )


def _ended(results: Sequence[Result]) -> str:
    failed = [f"{each['portion']} with {each['code']}" for each in results if each["code"] != 0]
    return f"some ended badly: {', '.join(failed)}" if failed else "all of them ended well"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What is known of one goal."""

    cases: int
    violations: int
    hours: float


def counted_for(goal: Goal, tally: Tally) -> Counted:
    results = goal.results(tally)
    runs = [run for run in tally.get("run", ()) if run.get("portion") in goal.portions]
    return Counted(
        cases=_sum(results, goal.count),
        violations=sum(_violations(each) for each in results),
        hours=sum(_number(run["seconds"]) for run in runs) / SECONDS_PER_HOUR,
    )


def _amount(tally: Tally) -> list[str]:
    """How much was tried, and what that excludes."""
    rows = []
    for goal in GOALS:
        found = counted_for(goal, tally)
        bound = upper_bound(found.violations, found.cases)
        shown = f"{bound:.1e}" if found.cases else "nothing is known"
        hours = f"{found.hours:.1f}"
        rows.append(
            (goal.words, f"{found.cases:,}", f"{goal.wanted:,}", found.violations, hours, shown)
        )
    header = ("tried", "cases", "goal of a release", "violations", "hours", "less than, at 95 %")
    return [AMOUNT, table(header, rows)]


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
    again = [(seeds, f"`{command}`") for command, seeds in _commands(results).items()]
    return [
        RANDOM,
        table(("", "count"), rows),
        table(("killed", "times"), places.most_common()),
        table(("call of the platform: what happened to it", "times"), mishaps.most_common()),
        table(("seed", "the same kills and messages, planned again"), again),
    ]


def _commands(results: Sequence[Result]) -> dict[str, str]:
    """The commands that plan the same again, each with the seeds that it was run with."""
    seeds: dict[str, list[int]] = defaultdict(list)
    for each in results:
        command = str(each["repeat"]).removesuffix(f" --seed {each['seed']}")
        seeds[f"{command} --seed N"].append(_number(each["seed"]))
    return {command: _ranges(sorted(set(found))) for command, found in seeds.items()}


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers in order, those without a gap as their first and last."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return ", ".join(" to ".join(map(str, each)) for each in ranges)


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
    sys.exit(publish([{}, *read_tallies(Path(sys.argv[1])).values()][-1]))
