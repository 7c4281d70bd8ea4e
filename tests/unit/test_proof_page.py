"""The page with the figures is made of the tally alone."""

from scripts.proof_page import page

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
