"""The page with the figures is made of the tally alone."""

from pathlib import Path

import pytest

from scripts import torture
from scripts.proof_page import PAGE, page, publish, unproven_page
from scripts.torture import is_whole

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
    assert "| 7 | `koboshi torture --lives 3 --seed 7` |" in said


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
    "seconds": 5,
    "codes": [0, 0],
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
PASSED: dict[str, list[dict[str, object]]] = {
    "run": [RUN],
    "crash points": [{"story": "echo", "at": ["turns.claim:before"], "violations": 0}],
    "random kills": [KILLS],
    "faults": [FAULT],
    "faults, doctored on purpose": [FAULT | {"campaign": "gateway: deaf", "violations": 2}],
    "state machine": [{"examples": 3, "violations": 0}],
    "simulation": [{"seeds": 3, "violations": 0}],
    "planted bugs": [BUG],
}
FAILED = {
    "a campaign that ended with 1": {"run": [RUN | {"codes": [1, 0]}]},
    "a second campaign that ended with 1": {"run": [RUN | {"codes": [0, 1]}]},
    "no campaign at all": {"run": [RUN | {"codes": []}]},
    "a choice of tests": {"run": [RUN | {"is_whole": False}]},
    "files that were changed since the commit": {"run": [RUN | {"commit": ""}]},
    "no run": {"run": []},
    "two runs in one tally": {"run": [RUN, RUN]},
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
    assert "ended well" in said
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

    assert said == unproven_page() or "and ended well." in said


def test_a_campaign_that_fails_ends_with_its_code_and_leaves_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 13, A7: a real run of pytest, which finds no such tests and says so by its code."""
    monkeypatch.setenv("KOBOSHI_TALLY", str(tmp_path / "tally.json"))
    monkeypatch.setattr(torture, "CAMPAIGNS", (("tests/nowhere",),))
    before = PAGE.read_text()

    assert torture.main(["-q"]) != 0

    assert PAGE.read_text() == before
    assert '"codes": [' in (tmp_path / "tally.json").read_text()
