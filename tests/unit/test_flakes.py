"""The counting of flakes: rounds add up, the order is the seed's, and the neighbours leave."""

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from scripts import flakes
from tests.cli.process import children

PROBE = """
import pytest

@pytest.mark.parametrize("number", range(9))
def test_number(number):
    assert number != 7
"""


def told(test: str, *, failed: bool = False) -> dict[str, Any]:
    return {"test": test, "is_call": True, "failed": failed, "seconds": 1.5, "output": "why"}


def test_rounds_of_a_commit_add_up_and_keep_the_first_failure() -> None:
    tally: dict[str, Any] = {}
    quiet, busy = flakes.Load("quiet"), flakes.Load("busy neighbours", 4)

    flakes.add_round(tally, quiet, 7, [told("a"), told("b")], 10)
    flakes.add_round(tally, busy, 8, [told("a"), told("b", failed=True)], 20)
    flakes.add_round(tally, busy, 9, [told("a"), told("b", failed=True)], 20)

    assert tally["tests"]["a"] == {"runs": 3, "failures": 0, "seconds": 4.5}
    assert (tally["tests"]["b"]["runs"], tally["tests"]["b"]["failures"]) == (3, 2)
    assert tally["tests"]["b"]["first_failure"]["seed"] == 8
    assert [each["failed"] for each in tally["rounds"]] == [[], ["b"], ["b"]]
    words = flakes.words_of(tally)
    assert "quiet: 0 of 1 rounds failed" in words
    assert "busy neighbours: 2 of 2 rounds failed" in words
    assert words.endswith("3 rounds, 6 runs, 2 failures")


@pytest.mark.parametrize(
    "wanted, names",
    [
        ("quiet", ["quiet"] * 3),
        ("loaded", ["busy neighbours", "one core", "busy neighbours"]),
        ("both", ["quiet"] * 3 + ["busy neighbours", "one core", "busy neighbours"]),
    ],
)
def test_a_load_is_repeated_as_often_as_asked(wanted: str, names: list[str]) -> None:
    assert [load.name for load in flakes.loads(wanted, 2, 3)] == names


def test_the_neighbours_are_gone_after_the_round() -> None:
    before = set(children(os.getpid()))
    with flakes.neighbours(flakes.Load("busy neighbours", 2)):
        spinning = set(children(os.getpid())) - before
    assert len(spinning) == 2
    assert not spinning & set(children(os.getpid()))


@pytest.mark.slow
def test_a_round_tells_each_test_once(tmp_path: Path) -> None:
    (tmp_path / "test_probe.py").write_text(PROBE)
    options = [str(tmp_path), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]

    seen = flakes.run_round(flakes.Load("quiet"), 1, options, tmp_path / "report")

    assert len(seen) == len({each["test"] for each in seen}) == 9
    (failed,) = [each for each in seen if each["failed"]]
    assert failed["test"].endswith("test_number[7]")
    assert "number != 7" in failed["output"]


@dataclass(frozen=True)
class Item:
    """What the shuffling reads of a test."""

    path: Path
    number: int


def order(seed: int, monkeypatch: pytest.MonkeyPatch) -> list[Item]:
    monkeypatch.setenv(flakes.SEED, str(seed))
    items: list[Any] = [Item(Path(name), number) for name in "abcdef" for number in range(6)]
    flakes.pytest_collection_modifyitems(items)
    return items


def test_a_seed_gives_an_order_in_which_files_stay_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = order(1, monkeypatch)

    assert first == order(1, monkeypatch) != order(2, monkeypatch)
    assert len(set(first)) == 36
    files = [item.path for item in first]
    assert sum(one != next_ for one, next_ in pairwise(files)) == 5
