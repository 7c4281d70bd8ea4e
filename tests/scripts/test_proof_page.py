"""The page with the figures is made of the tally alone."""

from pathlib import Path

import pytest

from scripts import torture
from scripts.portions import GOALS, NAMES, PORTIONS, Portion, upper_bound
from scripts.proof_page import PAGE, ROOT, page, publish, unproven_page
from scripts.tally_file import UNKNOWN, merge, read_tallies, rounds_of
from scripts.torture import is_whole, summary
from tests.harness.fewer import EVERY, left_out

KILLS = {
    "seed": 7,
    "lives": 3,
    "kills": 3,
    "kills_by_place": {"random": 3},
    "messages": 9,
    "answers": 8,
    "lost": 0,
    "doubled": 0,
    "ran_twice": 0,
    "lives_with_few_files": 2,
    "clock_jumps": 4,
    "model_outages": 1,
    "violations": [],
    "seconds": 1.5,
    "repeat": "koboshi torture --lives 3 --seed 7",
}


def test_kills_are_added_up_by_verb_moment_and_story() -> None:
    cases = [
        {"story": "echo", "at": ["turns.claim:before"], "kills": 1, "violations": 0},
        {"story": "echo", "at": ["turns.claim:after:2"], "kills": 1, "violations": 0},
        {"story": "job", "at": ["turns.claim:after", "turns.ask:before"], "violations": 1},
    ]

    said = page({"crash points": cases})

    assert "| turns.claim | 1 | 2 |" in said
    assert "| **all** | 2 | 2 |" in said
    assert "| echo | 2 | 2 | 0 |" in said
    assert "| job | 1 | 2 | 1 |" in said
    assert "| **all** | 3 | 4 | 1 |" in said


def test_random_kills_are_told_with_their_rate_and_how_to_repeat_them() -> None:
    said = page({"random kills": [KILLS, KILLS]})

    assert "| kills | 6 |" in said
    assert "| commands run twice | 0 |" in said
    assert "| clock jumps | 8 |" in said
    assert "| lives with few files | 4 |" in said
    assert "| model outages | 2 |" in said
    assert "| kills a minute, in one campaign | 120 |" in said
    assert "| 7 | `koboshi torture --lives 3 --seed N` |" in said


def test_many_seeds_of_one_command_are_one_line() -> None:
    lives = "koboshi torture --lives 3"
    many = [KILLS | {"seed": seed, "repeat": f"{lives} --seed {seed}"} for seed in (1, 2, 3, 7)]

    assert f"| 1 to 3, 7 | `{lives} --seed N` |" in page({"random kills": many})


def test_cases_of_one_kind_are_one_line() -> None:
    made = {"cases": 2, "not_reached": 0, "violations": 0}
    faults = [{"campaign": f"power cuts, part {part} of 2", **made} for part in (1, 2)]

    assert "| power cuts | 4 | 0 | 0 |" in page({"faults": faults})


def test_a_planted_bug_is_told_with_who_found_it() -> None:
    bug = {"bug": "ack before commit", "campaign": "simulation", "case": "seed 2", "said": "a | b"}

    said = page({"planted bugs": [bug]})

    assert "| ack before commit | simulation | seed 2 | `a / b` |" in said


def test_nothing_is_told_of_what_was_not_run() -> None:
    assert "## Faults" not in page({})
    assert "## See for yourself" in page({})


# ── what is published ───────────────────────────────────────────────────────────────────────────

RUN = {
    "portion": "kills",
    "seconds": 1_800,
    "code": 0,
    "is_whole": True,
    "version": "1.2.3",
    "commit": "0123456789abcdef",
    "python": "3.13.1",
    "system": "Linux",
    "cores": 2,
}
FAULT = {"campaign": "power cuts", "cases": 2, "not_reached": 0, "violations": 0}
BUG: dict[str, object] = {
    "bug": "ack before commit",
    "campaign": "simulation",
    "case": "seed 2",
    "said": "lost",
}
RUNS: list[dict[str, object]] = [RUN | {"portion": name} for name in NAMES]
PASSED: dict[str, list[dict[str, object]]] = {
    "run": RUNS,
    "crash points": [{"story": "echo", "at": ["turns.claim:before"], "violations": 0}],
    "random kills": [KILLS],
    "faults": [FAULT],
    "faults, doctored on purpose": [FAULT | {"campaign": "gateway: deaf", "violations": 2}],
    "state machine": [{"examples": 3, "violations": 0}],
    "simulation": [{"seeds": 3, "violations": 0}],
    "planted bugs": [BUG],
}
FAILED = {
    "a portion that ended with 1": {"run": [*RUNS, RUN | {"code": 1}]},
    "a portion that was not run": {"run": RUNS[1:]},
    "a choice of tests": {"run": [RUN | {"is_whole": False}, *RUNS[:1], *RUNS[2:]]},
    "files that were changed since the commit": {"run": [*RUNS, RUN | {"commit": ""}]},
    "runs of two commits": {"run": [*RUNS, RUN | {"commit": "fedcba9876543210"}]},
    "no run": {"run": []},
    "a violation at a crash point": {
        "crash points": [{"story": "echo", "at": ["turns.claim:before"], "violations": 1}]
    },
    "a violation after a random kill": {"random kills": [KILLS | {"violations": ["lost m1"]}]},
    "a violation after a fault": {"faults": [FAULT, FAULT | {"violations": 1}]},
    "a violation in the simulation": {"simulation": [{"seeds": 3, "violations": 1}]},
    **{f"nothing of {name}": {name: []} for name in PASSED if name != "run"},
}


def test_a_campaign_that_passed_is_published_with_its_version_and_figures(tmp_path: Path) -> None:
    """Issue 13, A7: the page names the version and the commit that was tried."""
    file, draft = tmp_path / "docs" / "proof.md", tmp_path / "build" / "proof.md"

    assert publish(PASSED, file, draft) == 0

    said = file.read_text()
    assert "Koboshi 1.2.3, commit 0123456789abcdef, with Python 3.13.1 on Linux" in said
    assert f"{len(NAMES)} runs of {len(NAMES)} portions took {len(NAMES) / 2:.1f} hours" in said
    assert "all of them ended well" in said
    assert "| kills | 3 |" in said
    assert not draft.exists()


@pytest.mark.parametrize("failed", list(FAILED.values()), ids=list(FAILED))
def test_a_tally_that_fails_never_writes_the_page(
    failed: dict[str, list[dict[str, object]]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Issue 13, A7: what was published stays; the page of a failure is in build/, and is no 0."""
    file, draft = tmp_path / "docs" / "proof.md", tmp_path / "build" / "proof.md"
    file.parent.mkdir()
    file.write_text("of the last one that passed")

    assert publish({**PASSED, **failed}, file, draft) != 0

    assert file.read_text() == "of the last one that passed"
    assert draft.exists()
    assert "the page is not published" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, whole",
    [
        (["-n", "4", "--dist=worksteal"], True),
        (["-x", "-q"], True),
        (["-k", "recovery"], False),
        (["-krecovery"], False),
        (["tests/sim"], False),
        (["--deselect=tests/sim/test_simulation.py"], False),
        (["-m", "4"], False),
    ],
)
def test_a_choice_of_tests_is_no_whole_campaign(options: list[str], whole: bool) -> None:
    assert is_whole(options) is whole


def test_the_page_in_the_tree_is_of_a_campaign_that_passed() -> None:
    """Issue 13, A7: or it says that there is none yet."""
    said = PAGE.read_text()

    assert said == unproven_page() or "and all of them ended well." in said


def test_a_portion_that_fails_ends_with_its_code_and_leaves_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 13, A7: a real run of pytest, which finds no such tests and says so by its code."""
    monkeypatch.setenv("KOBOSHI_TALLY", str(tmp_path / "tally.json"))
    monkeypatch.setattr(torture, "PORTIONS", (Portion(name="kills", chosen=("tests/nowhere",)),))
    before = PAGE.read_text()

    assert torture.main(["--portion", "kills", "-q"]) != 0

    assert PAGE.read_text() == before
    (tally,) = read_tallies(tmp_path / "tally.json").values()
    assert [run["code"] for run in tally["run"]] == [4]
    assert not list(tmp_path.glob("tally-*")), "what it counted by itself is merged"


# ── portions that add up ────────────────────────────────────────────────────────────────────────


def test_runs_add_up_by_their_commit(tmp_path: Path) -> None:
    """Issue 20, part 5."""
    place = tmp_path / "tally.json"
    run: dict[str, object] = {"portion": "kills", "code": 0}

    merge(place, "one", {"random kills": [KILLS], "run": [run]})
    merge(place, "two", {"random kills": [KILLS], "run": [run]})
    merged = merge(place, "one", {"random kills": [KILLS], "simulation": [{}], "run": [run]})

    assert [len(merged[name]) for name in ("random kills", "simulation", "run")] == [2, 1, 2]
    assert list(read_tallies(place)) == ["two", "one"], "the last one is at the end"
    assert rounds_of(place, "one", "kills") == 2
    assert rounds_of(place, "one", "cuts") == 0


def test_runs_on_changed_files_never_add_up(tmp_path: Path) -> None:
    place = tmp_path / "tally.json"
    for _ in range(2):
        merge(place, "", {"random kills": [KILLS], "run": [{"portion": "kills"}]})

    assert len(read_tallies(place)[UNKNOWN]["run"]) == 1
    assert rounds_of(place, "", "kills") == 0


@pytest.mark.parametrize(
    "violations, cases, bound",
    [(0, 100_000, 3.0e-5), (0, 0, 1.0), (1, 1_000, 4.74e-3), (5, 1_000, 1.05e-2), (3, 1, 1.0)],
)
def test_the_bound_is_the_rule_of_three_and_grows_with_violations(
    violations: int, cases: int, bound: float
) -> None:
    assert upper_bound(violations, cases) == pytest.approx(bound, rel=0.01)


def test_the_page_and_the_summary_tell_counts_hours_and_bounds() -> None:
    seeds = {"simulation": [{"seeds": 2_000, "violations": 0}], "families": [{"seeds": 1_000}]}
    cuts = [FAULT | {"campaign": "power cuts, part 1 of 4", "cases": 600}, FAULT]
    runs = [RUN | {"portion": "seeds"}, RUN | {"portion": "seeds"}]

    said = page({**seeds, "faults": cuts, "run": runs})

    assert "| seeds of the simulation | 3,000 | 100,000 | 0 | 1.0 | 1.0e-03 |" in said
    assert "| images of a disk after a power cut | 602 | 200,000 | 0 | 0.0 |" in said
    assert any(
        "3,000 of 100,000, 0 violations, 1.0 h" in line for line in summary({**seeds, "run": runs})
    )


def test_every_goal_has_portions_and_every_portion_finds_its_tests() -> None:
    assert {name for goal in GOALS for name in goal.portions} <= set(NAMES)
    for portion in PORTIONS:
        for each in portion.chosen:
            path = each.removeprefix("--ignore=")
            assert not path.startswith("tests/") or (ROOT / path).exists(), path


def test_what_a_test_run_leaves_out_is_there_and_in_a_portion() -> None:
    for family in EVERY:
        file, _, name = family.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), family
        chosen = [each for portion in PORTIONS for each in portion.chosen if file.startswith(each)]
        assert chosen, family


def test_of_a_family_the_first_and_every_so_many_are_kept() -> None:
    family = next(name for name, every in EVERY.items() if every == 3)
    ids = [f"{family}[{number}]" for number in range(5)]

    assert left_out([*ids, "tests/test_x.py::test_y[1]", "tests/test_x.py::test_y[2]"]) == [
        *(False, True, True, False, True),
        *(False, False),
    ]
