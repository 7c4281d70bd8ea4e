"""Which messages can be asked again, or dropped, as tables."""

from dataclasses import replace

import pytest

from koboshi.domain.inbox import EntryKind, EntryState
from koboshi.domain.people import STRANGER_CHARS_MAX
from koboshi.domain.retry import ASKED, WHY_NOT, Again, EntryFacts, again_of, why_not_dropped
from koboshi.domain.turn import TurnState

TABLE = """
message   waiting   -              -          waits
message   dropped   cut            -          unheard
message   dropped   inbox-full     -          unheard
message   dropped   by-hand        -          unheard
message   attached  -              queued     at-work
message   attached  -              running    at-work
message   attached  -              waiting    at-work
message   attached  -              suspended  at-work
message   attached  -              answered   answered
message   attached  -              done       answered
message   attached  -              stopped    unanswered
message   attached  -              failed     unanswered
command   handled   -              -          command
report    waiting   -              -          report
report    handled   -              -          report
report    dropped   already-read   -          report
report    attached  -              failed     report
ignored   ignored   not-allowed    -          unheard
ignored   ignored   not-addressed  -          nothing-kept
ignored   ignored   blank          -          nothing-kept
ignored   ignored   edit           -          nothing-kept
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
STRANGER = EntryFacts(
    kind=EntryKind.IGNORED, state=EntryState.IGNORED, reason="not-allowed", text="hello"
)
DROPPED = EntryFacts(
    kind=EntryKind.MESSAGE, state=EntryState.DROPPED, reason="cut", text="build it"
)


def facts(kind: str, state: str, reason: str, turn: str) -> EntryFacts:
    return EntryFacts(
        kind=EntryKind(kind),
        state=EntryState(state),
        reason=None if reason == "-" else reason,
        text="build it",
        turn=None if turn == "-" else TurnState(turn),
    )


@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_what_was_not_answered_is_asked_again_and_nothing_else(row: list[str]) -> None:
    *cells, expected = row

    assert again_of(facts(*cells)) is Again(expected)


@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_nothing_is_asked_in_vain(row: list[str]) -> None:
    """No retry for a person who is not served, in any state of the message, nor in a full inbox."""
    *cells, expected = row
    given, before = facts(*cells), Again(expected)

    strange = again_of(replace(given, is_served=False, is_full=True))
    crowded = again_of(replace(given, is_full=True))

    assert strange is (Again.NOT_SERVED if before in ASKED else before)
    assert crowded is (Again.FULL if before in ASKED else before)


@pytest.mark.parametrize(
    "given, expected",
    [
        (replace(STRANGER, has_place=False), Again.NO_PLACE),
        (replace(STRANGER, text="x" * (STRANGER_CHARS_MAX - 1)), Again.UNHEARD),
        (replace(STRANGER, text="x" * STRANGER_CHARS_MAX), Again.CUT_SHORT),
        (replace(STRANGER, text="/status"), Again.COMMAND),
        (replace(STRANGER, text=""), Again.NOTHING_KEPT),
        (replace(STRANGER, text="", has_files=True), Again.UNHEARD),
        (replace(STRANGER, is_press=True), Again.PRESSED),
        (replace(DROPPED, reason="question-closed", is_press=True), Again.PRESSED),
        # In its turn no person said anything but an answer to a question.
        (replace(facts(*ROWS[11][:4]), text=""), Again.REPORT),
        (replace(facts(*ROWS[11][:4]), text="", has_files=True), Again.UNANSWERED),
    ],
)
def test_what_cannot_be_asked_as_it_was_said(given: EntryFacts, expected: Again) -> None:
    assert again_of(given) is expected


@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_another_answer_is_asked_for_only_where_there_is_one(row: list[str]) -> None:
    *cells, expected = row
    wanted = Again.ANEW if expected == "answered" else Again(expected)
    given = replace(facts(*cells), wants_anew=True)

    assert again_of(given) is wanted
    if wanted is Again.ANEW:
        assert again_of(replace(given, text="")) is Again.REPORT
        assert again_of(replace(given, text="", has_files=True)) is Again.ANEW


def test_every_refusal_has_words() -> None:
    assert set(WHY_NOT) == set(Again) - ASKED
    assert len(set(WHY_NOT.values())) == len(WHY_NOT)


@pytest.mark.parametrize(
    "kind, state, reason, turn, words",
    [
        ("message", "attached", None, "t7", "it is in t7; `koboshi explain t7` says"),
        ("report", "attached", None, "t7", "it is in t7; `koboshi explain t7` says"),
        ("message", "dropped", "cut", None, "it was dropped before (cut)"),
        ("ignored", "ignored", "blank", None, "it was ignored before (blank)"),
        ("command", "handled", None, None, "a command is carried out when it arrives"),
        ("report", "handled", None, None, "the person was told of it"),
        ("report", "waiting", None, None, "what a process reports is told"),
    ],
)
def test_why_something_is_not_dropped(
    kind: str, state: str, reason: str | None, turn: str | None, words: str
) -> None:
    assert why_not_dropped(kind, state, reason, turn).startswith(words)
