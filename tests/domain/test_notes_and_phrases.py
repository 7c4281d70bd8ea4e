"""What the gateway says to the model, and what it says to a person."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.domain import notes, phrases
from koboshi.domain.action import TurnLimits, next_action
from koboshi.domain.ids import DeliveryId
from koboshi.domain.inbox import Words, yes_or_no
from koboshi.domain.marks import MARK
from koboshi.domain.recovery import Interruption
from koboshi.domain.transcript import Reply
from koboshi.domain.turn import TRANSITIONS, TurnEvent, TurnState

NOTES = {
    "recovery": notes.recovery(Interruption.CRASH, has_new_message=False, is_interactive=True),
    "outcome_unknown": notes.outcome_unknown("post", started="12:00"),
    "stopped": notes.stopped("stopped by the person"),
    "not_repeated": notes.not_repeated("post"),
    "empty_reply": notes.empty_reply(),
    "ended": notes.ended(
        TurnEvent.CUT, "", request="count", is_report=False, at="12:00", is_begun=True
    ),
    "asked_again": notes.asked_again([("terminal", "{}", "ok")]),
    "waited": notes.waited("two hours"),
    "heading": notes.heading("Mon 2026-11-16 15:42 UTC", age="2 h", sender="7", name="Ann"),
    "dated": notes.dated("[koboshi] p3 exited", "Mon 2026-11-16 15:42 UTC"),
    "unknown_tool": notes.unknown_tool("fly", "read, write"),
    "tool_failed": notes.tool_failed("read", "no such file"),
}

ABOUT_A_REQUEST: dict[str, Callable[[str], str]] = {
    "offer_stale": lambda request: phrases.offer_stale(request, "12:00"),
    "offer_worn_out": phrases.offer_worn_out,
    "offer_unknown": lambda request: phrases.offer_unknown(request, "post"),
    "offer_policy": lambda request: phrases.offer_policy(request, "12:00"),
    "gave_up_deaths": lambda request: phrases.gave_up_deaths(request, 3),
    "gave_up_stale": phrases.gave_up_stale,
    "failed": lambda request: phrases.failed(request, "it took too many steps"),
    "expired": phrases.expired,
}

OFFERS = sorted(name for name in ABOUT_A_REQUEST if name.startswith("offer"))

LONG_REQUEST = "count\n\nto " + "three " * 100


@pytest.mark.parametrize("name", NOTES)
def test_the_model_can_tell_the_gateway_from_a_person(name: str) -> None:
    """S66."""
    assert NOTES[name].startswith(MARK)


def test_every_event_that_ends_a_turn_without_an_answer_has_its_own_words() -> None:
    """Issue 12, A2: over the whole table, so that no new way out can forget its note."""
    closing = {
        event
        for (_, event), after in TRANSITIONS.items()
        if after in (TurnState.STOPPED, TurnState.FAILED)
    }
    said = {
        notes.ended(event, "", request="go", is_report=False, at="12:00", is_begun=True)
        for event in closing
    }

    assert len(said) == len(closing)
    assert all(notes.NOT_AGAIN in words for words in said)


@given(st.text(), st.text(), st.sampled_from([TurnEvent.ERRED, TurnEvent.DROPPED]))
def test_the_note_about_an_end_is_one_bounded_line_of_ours(
    request: str, reason: str, event: TurnEvent
) -> None:
    """Issue 12, A2: with any words of a person or a provider in it."""
    words = notes.ended(
        event,
        f"{reason}{MARK}\n",
        request=f"{MARK}\n{request}",
        is_report=False,
        at="12:00",
        is_begun=False,
    )

    assert words.startswith(MARK)
    assert words.count(MARK) == 1
    assert "\n" not in words
    assert len(words) < 1_000


def test_each_kind_of_interruption_has_its_own_words() -> None:
    """S63."""
    said = {
        notes.recovery(kind, has_new_message=False, is_interactive=True) for kind in Interruption
    }

    assert len(said) == len(Interruption)


def test_with_a_new_message_the_model_is_told_to_answer_it_first() -> None:
    """S64."""
    note = notes.recovery(Interruption.CRASH, has_new_message=True, is_interactive=True)

    assert "answer that first" in note


@pytest.mark.parametrize("has_new_message", [False, True])
def test_a_resumed_turn_is_told_not_to_repeat_what_was_done(has_new_message: bool) -> None:
    """S64."""
    note = notes.recovery(Interruption.DRAIN, has_new_message=has_new_message, is_interactive=True)

    assert "do not repeat it" in note


def test_where_no_one_can_answer_the_model_is_told_to_finish_alone() -> None:
    """S65."""
    note = notes.recovery(Interruption.CRASH, has_new_message=False, is_interactive=False)

    assert "Questions cannot be answered here" in note


def test_a_call_of_unknown_outcome_is_presented_as_such() -> None:
    """S68."""
    note = notes.outcome_unknown("post", started="12:00")

    assert "outcome is unknown" in note
    assert "Do not repeat it" in note


@pytest.mark.parametrize("name", ABOUT_A_REQUEST)
def test_a_phrase_is_one_line_whatever_was_asked(name: str) -> None:
    assert "\n" not in ABOUT_A_REQUEST[name](LONG_REQUEST)


@pytest.mark.parametrize("name", ABOUT_A_REQUEST)
def test_a_phrase_is_short_whatever_was_asked(name: str) -> None:
    assert len(ABOUT_A_REQUEST[name](LONG_REQUEST)) < 300


@pytest.mark.parametrize("name", ABOUT_A_REQUEST)
def test_a_phrase_names_the_request_it_is_about(name: str) -> None:
    assert "«count to three»" in ABOUT_A_REQUEST[name]("count to\nthree")


@pytest.mark.parametrize("name", OFFERS)
def test_an_offer_is_a_question(name: str) -> None:
    assert ABOUT_A_REQUEST[name]("count").endswith("?")


@pytest.mark.parametrize("place, meant", [(0, True), (1, False)])
def test_the_buttons_under_an_offer_are_understood(place: int, meant: bool) -> None:
    choice = phrases.YES_NO[place]

    assert yes_or_no(Words(text="", sent_ms=0, choice_id=choice.choice_id)) is meant
    assert yes_or_no(Words(text=choice.label, sent_ms=0)) is meant


@given(st.text(), st.integers(1, 200))
def test_an_excerpt_is_one_line_within_its_limit(text: str, limit: int) -> None:
    excerpt = phrases.excerpt(text, limit)

    assert len(excerpt) <= limit
    assert len(excerpt.splitlines()) <= 1


@given(st.text(max_size=80))
def test_an_excerpt_of_a_short_text_leaves_nothing_out(text: str) -> None:
    assert phrases.excerpt(text).split() == text.split()


def test_a_text_of_exactly_the_limit_is_not_cut() -> None:
    assert phrases.excerpt("count", 5) == "count"


def test_an_excerpt_shows_that_something_was_left_out() -> None:
    assert phrases.excerpt("count to three", 10) == "count to…"


def test_every_way_a_turn_fails_by_itself_has_words_for_a_person() -> None:
    no_steps, no_patience = TurnLimits(steps_max=0), TurnLimits(empty_replies_max=0)
    failures = [
        next_action([], [], limits=no_steps),
        next_action([], [], proposed=Reply(text=""), limits=no_patience),
    ]

    assert {getattr(failure, "reason", None) for failure in failures} <= phrases.FAILURES.keys()


def test_a_failure_without_words_of_its_own_is_told_as_it_is() -> None:
    assert phrases.failure("the model refused") == "the model refused"


@pytest.mark.parametrize("reason", sorted(phrases.FAILURES))
def test_a_known_failure_is_told_in_words(reason: str) -> None:
    assert phrases.failure(reason) != reason


@pytest.mark.parametrize(
    "ahead, words", [(1, "after this one"), (2, "2 before it"), (7, "7 before it")]
)
def test_a_person_is_told_how_many_are_before_them(ahead: int, words: str) -> None:
    """S162."""
    assert words in phrases.queued(ahead)


def test_a_moment_is_told_with_its_time_zone() -> None:
    assert phrases.clock_words(3_661_000) == "01 Jan 01:01 UTC"


def test_a_person_who_says_no_is_told_that_the_work_ends() -> None:
    """S162."""
    assert "let it go" in phrases.declined()


@pytest.mark.parametrize(
    "count, words", [(1, "One message"), (2, "2 messages"), (9, "d5 and 4 more")]
)
def test_lost_deliveries_are_counted_and_named_with_a_way_to_get_them(
    count: int, words: str
) -> None:
    """Issue 12, A1."""
    told = phrases.undelivered([DeliveryId(number + 1) for number in range(count)])
    assert words in told
    assert "koboshi outbox retry d1" in told


def test_a_possible_duplicate_says_so_on_a_line_of_its_own() -> None:
    """S146."""
    assert "may be a duplicate" in phrases.DUPLICATE_LABEL
    assert phrases.DUPLICATE_LABEL.endswith("\n")
