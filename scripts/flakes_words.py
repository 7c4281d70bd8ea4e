"""What `make flakes` says about the rounds that it has counted."""

from typing import Any

SHOWN_MAX = 10


def words_of(tally: dict[str, Any]) -> str:
    """The counts of some code, tests that failed first."""
    rounds, tests = tally.get("rounds", []), tally.get("tests", {})
    by_load: dict[str, list[int]] = {}
    for each in rounds:
        counts = by_load.setdefault(each["load"], [0, 0])
        counts[0] += 1
        counts[1] += bool(each["failed"])
    lines = [f"{name}: {bad} of {all_} rounds failed" for name, (all_, bad) in by_load.items()]
    lines += ["", "    runs failures  seconds"]
    by_seconds = sorted(tests, key=lambda name: -tests[name]["seconds"])
    flaky = [name for name in by_seconds if tests[name]["failures"]]
    for name in [*flaky, *[each for each in by_seconds if each not in flaky][:SHOWN_MAX]]:
        told = tests[name]
        lines.append(f"{told['runs']:8} {told['failures']:8} {told['seconds']:8.1f}  {name}")
    for name in flaky:
        first = tests[name]["first_failure"]
        lines += ["", f"{name}, first in a round with seed {first['seed']}, {first['load']}:"]
        lines.append(first["output"])
    return "\n".join([*lines, "", _runs(tally), _sum(rounds, tests)])


def _runs(tally: dict[str, Any]) -> str:
    """How often the tests ran: alone in the file, or as cases that take turns."""
    files, tests = tally.get("files", {}), tally.get("tests", {})
    counted = {name: told for name, told in tests.items() if files.get(name.partition("::")[0])}
    alone = [told["runs"] for name, told in counted.items() if "[" not in name]
    cases = [told["runs"] for name, told in counted.items() if "[" in name]
    parts = [
        f"{len(runs)} {what} ran {min(runs)} to {max(runs)} times"
        for what, runs in (("tests", alone), ("cases of parametrised tests", cases))
        if runs
    ]
    calm = sum(not races for races in files.values())
    parts += [f"{calm} files start no process and were looked at once"] if calm else []
    return "; ".join(parts)


def _sum(rounds: list[Any], tests: dict[str, Any]) -> str:
    runs = sum(each["runs"] for each in tests.values())
    failures = sum(each["failures"] for each in tests.values())
    return f"{len(rounds)} rounds, {runs} runs, {failures} failures"
