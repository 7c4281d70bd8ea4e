"""Why something was not answered: words for each reason, and a remedy where there is one."""

import pytest

from koboshi.domain.reasons import (
    OwedPart,
    Reason,
    TurnStanding,
    what_is_wrong,
    why_closed,
    why_delivery,
    why_message,
    why_turn,
)
from koboshi.domain.recovery import DIED_EACH_TIME, RULES, Verdict, VerdictKind
from koboshi.domain.turn import CLOSED, TRANSITIONS, TurnEvent, TurnState
from koboshi.domain.worker import Breaker


def turn(state: str, event: str, **more: object) -> TurnStanding:
    values: dict[str, object] = {
        "name": "t1",
        "reason": None,
        "deaths": 0,
        "channel": "telegram:main",
        "barred": ("7",),
        "is_running": True,
    }
    return TurnStanding(state=state, event=event, **values | more)  # type: ignore[arg-type]


def owed(state: str, **more: object) -> OwedPart:
    values: dict[str, object] = {
        "name": "d1",
        "reason": None,
        "attempts": 0,
        "channel": "telegram:main",
        "is_running": True,
    }
    return OwedPart(state=state, **values | more)  # type: ignore[arg-type]


CLOSING = sorted({event for (_, event), after in TRANSITIONS.items() if after in CLOSED})


@pytest.mark.parametrize("event", CLOSING)
def test_every_way_to_end_a_turn_has_words_of_its_own(event: TurnEvent) -> None:
    told = why_closed(TurnState.FAILED, event, "some reason", 1)

    assert told.words
    assert told.words != event


def test_three_deaths_are_counted_and_can_be_retried() -> None:
    told = why_closed(TurnState.FAILED, TurnEvent.GAVE_UP, DIED_EACH_TIME, 3)

    assert told.words.startswith("given up: the gateway died 3 times in a row")
    assert told.remedy.startswith("/retry")


def test_a_turn_without_an_answer_names_the_message_that_can_be_asked_again() -> None:
    told = why_turn(turn("failed", "erred", reason="it broke", message="m3"))
    done = why_turn(turn("done", "settled", message="m3"))
    by_report = why_turn(turn("failed", "erred", reason="it broke"))

    assert told.remedy.startswith("/retry in the chat tries it once more; ")
    assert "`koboshi inbox retry m3`" in told.remedy
    assert done.remedy == ""
    assert by_report.remedy == "/retry in the chat tries it once more"


@pytest.mark.parametrize("rule", [rule.label for rule in RULES])
def test_an_open_turn_without_a_gateway_always_has_a_remedy(rule: str) -> None:
    because = next(each.because for each in RULES if each.label == rule)
    verdict = Verdict(kind=VerdictKind.STAND, rule=rule, because=because)

    told = why_turn(turn("suspended", "parked", is_running=False, verdict=verdict))

    assert told.words == because
    assert told.remedy


def test_a_question_that_could_not_be_sent_is_told_before_that_it_waits() -> None:
    verdict = Verdict(kind=VerdictKind.STAND, rule="question-open", because="it waits")
    lost = owed("owed", attempts=2, trouble="no route")

    told = why_turn(turn("waiting", "asked", verdict=verdict, question="tea?", owed=lost))

    assert told.words == (
        "its question is stored, but telegram:main cannot be reached: no route (2 tries)"
    )


@pytest.mark.parametrize("state, event", [("waiting", "asked"), ("answered", "answered")])
def test_words_that_are_held_are_told_with_both_ways_out(state: str, event: str) -> None:
    """Issue 14, point 3: they were told as words whose channel cannot be reached."""
    verdict = Verdict(kind=VerdictKind.STAND, rule="question-open", because="it waits")
    part = owed("held", attempts=1, reason="it may have arrived")

    told = why_turn(turn(state, event, verdict=verdict, question="tea?", owed=part))

    what = "its question" if state == "waiting" else "the answer"
    assert told.words == (
        f"{what} is stored, and held until the operator decides: it may have arrived"
    )
    assert "koboshi outbox release d" in told.remedy
    assert "koboshi outbox drop d" in told.remedy


@pytest.mark.parametrize(
    "part,words,has_remedy",
    [
        (owed("owed"), "it is sent next", False),
        (owed("owed", is_running=False), "not sent yet: no gateway is running", True),
        (owed("owed", attempts=1, reason="busy"), "not sent yet, 1 try so far: busy", True),
        (owed("sending"), "being sent now", False),
        (owed("held", reason="it may"), "held until the operator decides: it may", True),
        (owed("delivered", attempts=1), "delivered", False),
        (owed("rejected", reason="blocked"), "refused by the platform: blocked", True),
        (owed("abandoned", reason="too old"), "given up: too old", True),
    ],
)
def test_deliveries(part: OwedPart, words: str, has_remedy: bool) -> None:
    told = why_delivery(part)

    assert told.words == words
    assert bool(told.remedy) is has_remedy


def test_an_unknown_person_is_named_with_both_ways_to_let_them_in() -> None:
    told = why_message(
        "m3", "ignored", "ignored", "not-allowed", sender="42", channel="telegram:main"
    )

    assert "koboshi pairing approve CODE" in told.remedy
    assert "add 42 to `allow` of [channels.telegram.main]" in told.remedy
    assert "koboshi inbox retry m3" in told.remedy


def test_those_who_keep_a_turn_from_running_are_named_as_the_configuration_names_them() -> None:
    """Issue 13: all of them, and no others."""
    verdict = Verdict(kind=VerdictKind.SUSPEND, rule="person-not-allowed", because="…")
    told = why_turn(turn("suspended", "parked", verdict=verdict, barred=("42", "43")))

    assert "add 42 and 43 to `allow` of [channels.telegram.main]" in told.remedy


@pytest.mark.parametrize(
    "kind, reason, has_remedy",
    [
        ("message", "cut", True),
        ("message", "inbox-full", True),
        ("message", "by-hand", True),
        ("message", "question-closed", False),
        ("message", "person-not-allowed", False),
        ("report", "cut", False),
        ("report", "already-read", False),
    ],
)
def test_what_was_dropped_says_how_it_is_asked_again(
    kind: str, reason: str, has_remedy: bool
) -> None:
    told = why_message("m3", "dropped", kind, reason, sender="42", channel="telegram:main")

    assert told.words.startswith("dropped: ")
    assert told.words.endswith(f" ({reason})")
    assert told.words != f"dropped: {reason} ({reason})"
    assert ("koboshi inbox retry m3" in told.remedy) is has_remedy


def test_nothing_is_wrong_where_nothing_is() -> None:
    assert what_is_wrong(breaker=Breaker.CLOSED, unreached={}, held=0, store=None) == ()


def test_all_that_is_wrong_is_told_with_a_remedy_each() -> None:
    found: tuple[Reason, ...] = what_is_wrong(
        breaker=Breaker.OPEN,
        unreached={"telegram:main": "no route"},
        held=2,
        store="disk full",
        unheard=1,
    )

    assert len(found) == 5
    assert all(reason.remedy for reason in found)
