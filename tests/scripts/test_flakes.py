"""The counting of flakes: rounds add up, choice and order are the seed's, neighbours leave."""

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from scripts import flakes
from scripts.flakes_words import words_of
from tests.cli.process import children

PROBE = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_number(number):
    assert number != 2
"""
STARTING = """
import subprocess

def test_alone():
    pass

def test_with_a_process():
    subprocess.run(["true"], check=True)
"""


def told(test: str, *, failed: bool = False, races: bool = True) -> dict[str, Any]:
    about = {"test": test, "is_call": True, "failed": failed, "races": races}
    return {**about, "seconds": 1.5, "output": "why"}


def test_rounds_of_the_same_code_add_up_and_keep_the_first_failure() -> None:
    tally: dict[str, Any] = {}
    quiet, busy = "quiet", "busy neighbours"

    flakes.add_round(tally, quiet, 7, [told("a"), told("b")], 10)
    flakes.add_round(tally, busy, 8, [told("a"), told("b", failed=True)], 20)
    flakes.add_round(tally, busy, 9, [told("a"), told("b", failed=True)], 20)

    assert tally["tests"]["a"] == {"runs": 3, "failures": 0, "seconds": 4.5}
    assert (tally["tests"]["b"]["runs"], tally["tests"]["b"]["failures"]) == (3, 2)
    assert tally["tests"]["b"]["first_failure"]["seed"] == 8
    assert [each["failed"] for each in tally["rounds"]] == [[], ["b"], ["b"]]
    words = words_of(tally)
    assert "quiet: 0 of 1 rounds failed" in words
    assert "busy neighbours: 2 of 2 rounds failed" in words
    assert words.endswith("3 rounds, 6 runs, 2 failures")


def test_the_tally_says_how_often_the_tests_ran_and_which_files_are_left_out() -> None:
    tally: dict[str, Any] = {}
    first = [told("a.py::one"), told("a.py::many[1]"), told("b.py::calm", races=False)]

    flakes.add_round(tally, "quiet", 1, first, 10)
    flakes.add_round(tally, "quiet", 2, [told("a.py::one"), told("a.py::many[2]")], 10)

    assert flakes.calm_files(tally) == ["b.py"]
    words = words_of(tally)
    assert "1 tests ran 2 to 2 times; 2 cases of parametrised tests ran 1 to 1 times" in words
    assert "1 files start no process" in words


def test_a_file_is_not_left_out_for_one_test_that_is_alone() -> None:
    tally: dict[str, Any] = {}
    mixed = [told("a.py::calm", races=False), told("a.py::one"), told("a.py::calm", races=False)]
    flakes.add_round(tally, "quiet", 1, mixed, 10)
    assert flakes.calm_files(tally) == []


@pytest.mark.parametrize(
    "load, others, name",
    [
        (flakes.Load("quiet"), 1.0, "quiet"),
        (flakes.Load("quiet"), 30.0, "others at work"),
        (flakes.Load("busy neighbours", 4), 30.0, "busy neighbours"),
    ],
)
def test_a_quiet_round_beside_others_is_not_counted_as_quiet(
    load: flakes.Load, others: float, name: str
) -> None:
    assert flakes.load_seen(load, others, seconds=60.0, cores=2) == name


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

    assert len(seen) == len({each["test"] for each in seen}) == 4
    (failed,) = [each for each in seen if each["failed"]]
    assert failed["test"].endswith("test_number[2]")
    assert "number != 2" in failed["output"]
    assert not any(each["races"] for each in seen)


@pytest.mark.slow
def test_a_round_sees_who_starts_a_process_and_leaves_calm_files_out(tmp_path: Path) -> None:
    (tmp_path / "test_calm.py").write_text(PROBE)
    (tmp_path / "test_starting.py").write_text(STARTING)
    options = [str(tmp_path), "--rootdir", str(tmp_path), "-p", "no:cacheprovider", "-n", "1"]

    seen = flakes.run_round(
        flakes.Load("quiet"), 1, options, tmp_path / "report", calm=["test_calm.py"]
    )

    assert {each["test"].partition("::")[2]: each["races"] for each in seen} == {
        "test_alone": False,
        "test_with_a_process": True,
    }


@dataclass(frozen=True)
class Item:
    """What the choosing reads of a test."""

    path: Path
    nodeid: str


class Hook:
    def __init__(self) -> None:
        self.left: list[Item] = []

    def pytest_deselected(self, items: list[Item]) -> None:
        self.left += items


@dataclass(frozen=True)
class Config:
    hook: Hook


def chosen(seed: int, tests: list[Item], monkeypatch: pytest.MonkeyPatch) -> list[Item]:
    monkeypatch.setenv(flakes.SEED, str(seed))
    items: list[Any] = list(tests)
    config: Any = Config(hook=Hook())
    flakes.pytest_collection_modifyitems(config, items)
    assert {*items, *config.hook.left} == set(tests)
    return items


def order(seed: int, monkeypatch: pytest.MonkeyPatch) -> list[Item]:
    tests = [Item(Path(name), f"{name}::{number}") for name in "abcdef" for number in range(6)]
    return chosen(seed, tests, monkeypatch)


def test_a_seed_gives_an_order_in_which_files_stay_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = order(1, monkeypatch)

    assert first == order(1, monkeypatch) != order(2, monkeypatch)
    assert len(set(first)) == 36
    files = [item.path for item in first]
    assert sum(one != next_ for one, next_ in pairwise(files)) == 5


def test_a_round_takes_four_cases_of_a_family_by_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [Item(Path("a"), f"a::many[{number}]") for number in range(50)]
    alone = Item(Path("a"), "a::alone")

    rounds = [set(chosen(seed, [*cases, alone], monkeypatch)) for seed in range(3)]

    assert all(len(each) == 5 for each in rounds)
    assert all(alone in each for each in rounds)
    assert len(set.union(*rounds)) > 9
