"""What a person is asked to allow: shown letter by letter, and bound to what will run."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.domain.approval import (
    LITERAL_CHARS_MAX,
    Approval,
    ApprovalCard,
    NotAnAnswer,
    Unaskable,
    card_of,
    rule_key_of,
    ruling_in,
    seal_of,
    why_no_answer,
)
from koboshi.domain.command import QuestionKind
from koboshi.domain.inbox import Words
from koboshi.domain.phrases import ALWAYS, YES_NO
from koboshi.domain.text import exactly, unseen_count
from koboshi.domain.transcript import Author, Question

PLAIN = Approval(lead="May I run this in /work?", literal="make", binds=("inside", "/work"))


def card(approval: Approval = PLAIN, units_max: int | None = None, has_page: bool = True) -> object:
    return card_of(
        "terminal",
        "{}",
        approval,
        asked_by="5 (Ann)",
        expires_ms=1_794_930_120_000,
        lasts_ms=86_400_000,
        units_max=units_max,
        has_page=has_page,
    )


def made(approval: Approval = PLAIN, units_max: int | None = None) -> ApprovalCard:
    found = card(approval, units_max)
    assert isinstance(found, ApprovalCard)
    return found


def test_a_card_says_what_who_why_and_how_long() -> None:
    """Issue 15, item 5."""
    found = made(replace(PLAIN, notes=("It stays inside.",), reason="to build it"))

    assert found.text == (
        "May I run this in /work?\n\nmake\n\nIt stays inside.\n"
        "Why, in the agent's own words: «to build it»\nAsked by 5 (Ann).\n"
        "Good until 17 Nov 15:42 UTC (1 d)."
    )
    assert found.text[found.sealed.begin : found.sealed.end] == "make"
    assert found.choices == YES_NO


@pytest.mark.slow
@given(st.text(max_size=200))
def test_the_literal_stands_whole_at_its_place(literal: str) -> None:
    """Issue 15, V1, V2."""
    found = made(replace(PLAIN, literal=literal))

    shown = found.text[found.sealed.begin : found.sealed.end]
    assert shown == exactly(literal)
    assert all(char.isprintable() or char in "\n\t" for char in shown)
    assert ("cannot be seen" in found.text[found.sealed.end :]) is (unseen_count(literal) > 0)


def test_what_cannot_be_seen_is_written_out_and_never_removed() -> None:
    """Issue 15, V2."""
    hidden = "a\u202eb\u200bc\rd\x1b[2Ke\u00a0f\u2028g\ufeffh\U000e0041i\u3164j\u2800k"

    assert exactly(hidden) == (
        "a\\u202eb\\u200bc\\u000dd\\u001b[2Ke\\u00a0f\\u2028g\\ufeffh\\U000e0041i\\u3164j\\u2800k"
    )
    assert exactly("ls\n\t'é' 日本") == "ls\n\t'é' 日本"


def test_what_does_not_fit_whole_is_not_offered_in_the_chat() -> None:
    """Issue 15, V2: the page shows it whole; without a page no person is asked."""
    long = replace(PLAIN, literal="x" * 40_000)
    found = made(long, units_max=4_000)

    assert found.sealed.is_elsewhere
    assert found.text.count("x" * 40_000) == 1
    assert "too long to approve here" in found.chat_text
    assert len(found.chat_text) < 4_000
    assert card(long, units_max=4_000, has_page=False) is Unaskable.TOO_LONG
    assert not made(long).sealed.is_elsewhere
    assert card(replace(PLAIN, literal="x" * (LITERAL_CHARS_MAX + 1))) is Unaskable.TOO_LONG


def test_room_is_counted_as_the_platform_counts() -> None:
    text = made(replace(PLAIN, literal="😀" * 100)).text
    units = len(text.encode("utf-16-le")) // 2

    assert not made(replace(PLAIN, literal="😀" * 100), units).sealed.is_elsewhere
    assert made(replace(PLAIN, literal="😀" * 100), units - 1).sealed.is_elsewhere


def test_a_seal_changes_with_everything_that_decides_what_happens() -> None:
    """Issue 15, item 5."""
    seals = {
        seal_of("terminal", "{}", PLAIN),
        seal_of("process", "{}", PLAIN),
        seal_of("terminal", "{ }", PLAIN),
        seal_of("terminal", "{}", replace(PLAIN, literal="make ")),
        seal_of("terminal", "{}", replace(PLAIN, binds=("outside", "/work"))),
        seal_of("terminal", "{}", replace(PLAIN, binds=("inside", "/other"))),
        seal_of("terminal", "{}", replace(PLAIN, binds=("inside/work",))),
    }

    assert len(seals) == 7
    assert seal_of("terminal", "{}", replace(PLAIN, reason="other")) in seals


def test_a_rule_knows_the_same_again_whatever_the_reason() -> None:
    """Issue 15, item 5."""
    kept = replace(PLAIN, may_be_kept=True)

    assert rule_key_of("terminal", PLAIN) == ""
    assert rule_key_of("terminal", kept) == rule_key_of("terminal", replace(kept, reason="again"))
    assert rule_key_of("terminal", kept) != rule_key_of("terminal", replace(kept, literal="make x"))
    assert made(kept).choices == (*YES_NO, ALWAYS)


def question(approval: Approval = PLAIN, units_max: int | None = None) -> Question:
    found = made(approval, units_max)
    return Question(
        author=Author.MODEL, text=found.text, choices=found.choices, sealed=found.sealed
    )


def words(text: str = "", **more: object) -> Words:
    return replace(Words(text=text, sent_ms=0), **more)  # type: ignore[arg-type]


KEPT = replace(PLAIN, may_be_kept=True)


@pytest.mark.parametrize(
    "said, is_yes, keeps",
    [
        (words("yes"), True, False),
        (words(choice_id="yes"), True, False),
        (words("always"), True, True),
        (words(choice_id="always"), True, True),
        (words(ALWAYS.label), True, True),
        (words("no"), False, False),
        (words("yes, but not today"), False, False),
        (words("1"), False, False),
    ],
)
def test_only_a_literal_yes_is_one(said: Words, is_yes: bool, keeps: bool) -> None:
    ruling = ruling_in(said, question(KEPT))

    assert (ruling.is_yes, ruling.keeps) == (is_yes, keeps)


def test_always_is_no_yes_where_it_was_not_offered() -> None:
    assert not ruling_in(words("always"), question()).is_yes
    assert not ruling_in(words(choice_id="always"), question()).is_yes


def test_forwarded_words_are_no_yes_and_no_no() -> None:
    """Issue 15, V6."""
    for said in ("yes", "no", "always", "anything"):
        forwarded = words(said, is_forwarded=True)
        for kind in (QuestionKind.APPROVAL, QuestionKind.OFFER):
            why = why_no_answer(kind, question(), forwarded, is_allowed=True, is_shown=True)
            assert why is NotAnAnswer.FORWARDED
        kind = QuestionKind.ANSWER
        assert why_no_answer(kind, question(), forwarded, is_allowed=True, is_shown=True) is None


def test_a_yes_does_not_count_where_the_question_was_not_shown_whole() -> None:
    """Issue 15, V2."""
    long = question(replace(PLAIN, literal="x" * 9_000), units_max=4_000)

    def why(said: Words) -> NotAnAnswer | None:
        return why_no_answer(QuestionKind.APPROVAL, long, said, is_allowed=True, is_shown=True)

    assert why(words("yes")) is NotAnAnswer.TOO_LONG
    assert why(words(choice_id="yes")) is NotAnAnswer.TOO_LONG
    assert why(words("no")) is None
    assert why(words("put it into a file")) is None


def test_a_yes_does_not_count_where_the_question_did_not_arrive() -> None:
    def why(kind: QuestionKind, said: str) -> NotAnAnswer | None:
        return why_no_answer(kind, question(), words(said), is_allowed=True, is_shown=False)

    assert why(QuestionKind.APPROVAL, "yes") is NotAnAnswer.NOT_SHOWN
    assert why(QuestionKind.APPROVAL, "no") is None
    assert why(QuestionKind.ANSWER, "yes") is None


def test_strangers_answer_nothing() -> None:
    why = why_no_answer(
        QuestionKind.APPROVAL, question(), words("yes"), is_allowed=False, is_shown=True
    )

    assert why is NotAnAnswer.NOT_ALLOWED
