"""The behaviours that this part of the project must show: each has a test that names it."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

KERNEL = frozenset(
    [*range(1, 16), *range(35, 42), *range(45, 63), 86, 87, 97, *range(145, 151), *range(158, 164)]
)
DOES_NOT_APPLY = {
    121: "no session is ever pruned or reset by itself, so that nothing has to keep one from it",
    125: "whatever is said goes through the outbox, and every channel has one: there is no place "
    "that cannot be told later",
}
"""Statements about processes that this version has nothing to show for, and why."""
PROCESSES = frozenset(range(104, 140)) - set(DOES_NOT_APPLY)
LEAVING_AND_IN_CHARGE = frozenset([*range(16, 53), *range(71, 104), *range(164, 173)])
"""Stopping, draining, coming back, loops; `/stop`, generations, follow-ups and what is said on the
way; and what holds for everything."""

PLATFORMS = frozenset(range(145, 155))

REQUIRED = KERNEL | PROCESSES | LEAVING_AND_IN_CHARGE | PLATFORMS
"""Statements S1 to S172 describe the whole; these concern what is there."""


def test_every_required_behaviour_is_named_in_the_docstring_of_a_test() -> None:
    named = behaviours_named()
    missing = sorted(REQUIRED - set(named))
    assert not missing, "no test names " + ", ".join(f"S{number}" for number in missing)


def behaviours_named() -> dict[int, list[str]]:
    """For each statement the tests that name it, as `file::test`."""
    found: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_"):
                for number in _statements(ast.get_docstring(node) or ""):
                    found.setdefault(number, []).append(f"{path.relative_to(TESTS)}::{node.name}")
    return found


def _statements(words: str) -> list[int]:
    """The numbers in `S1, S3-S5` and the like."""
    numbers: list[int] = []
    for first, last in re.findall(r"\bS(\d+)(?:\s*(?:-|to)\s*S(\d+))?", words):
        numbers += range(int(first), int(last or first) + 1)
    return numbers


if __name__ == "__main__":
    for number, tests in sorted(behaviours_named().items()):
        print(f"S{number}")
        for test in tests:
            print(f"    {test}")
