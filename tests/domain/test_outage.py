"""A model that does not answer: growing waits, one word to the person, and an end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.domain.outage import (
    GiveUp,
    Outage,
    Patience,
    TryAgain,
    after_failure,
    outage_notice,
    standing,
)

MINUTE_MS = 60_000
SILENT = "the provider could not be reached"


def outage(tries: int, waited_ms: int) -> Outage:
    return Outage(tries=tries, waited_ms=waited_ms, reason=SILENT)


def ride_out(patience: Patience, asked_ms: int | None = None) -> list[tuple[int, bool]]:
    """When each try after the first failure is made, and whether the person is told before it;
    until it is given up. Each request fails at once."""
    tried: list[tuple[int, bool]] = []
    waited_ms = 0
    for tries in range(1, 10_000):
        decision = after_failure(outage(tries, waited_ms), asked_ms, patience)
        if isinstance(decision, GiveUp):
            return tried
        waited_ms += decision.wait_ms
        tried.append((waited_ms, decision.is_told))
    raise AssertionError("it never ends")


def test_the_waits_grow_and_the_last_try_is_at_the_end_of_the_patience() -> None:
    """Issue 12, B13: minutes, not fifteen seconds."""
    times = [at_ms // 1000 for at_ms, _ in ride_out(Patience())]
    assert times[:9] == [1, 3, 7, 15, 20, 52, 112, 172, 232]
    assert times[-1] == 600


def test_the_person_is_told_when_it_has_failed_for_twenty_seconds() -> None:
    """Issue 12, B13: not before, and a try is made at that moment."""
    tried = ride_out(Patience())
    assert [at_ms for at_ms, is_told in tried if not is_told] == [
        1_000,
        3_000,
        7_000,
        15_000,
        20_000,
    ]


def test_no_one_is_told_when_patience_is_short() -> None:
    assert not any(is_told for _, is_told in ride_out(Patience(total_ms=19_000)))


def test_no_patience_gives_up_at_the_first_failure() -> None:
    assert ride_out(Patience(total_ms=0)) == []
    decision = after_failure(outage(1, 0), None, Patience(total_ms=0))
    assert decision == GiveUp(words=f"the model did not answer ({SILENT})")


def test_the_words_at_the_end_say_how_long_it_was_tried() -> None:
    decision = after_failure(outage(17, 10 * MINUTE_MS), None, Patience())
    assert decision == GiveUp(words=f"the model did not answer for 10 min ({SILENT})")


@pytest.mark.parametrize("asked_ms, waited_ms", [(30_000, 0), (570_000, 30_000), (600_000, 0)])
def test_a_wait_that_the_provider_names_is_kept(asked_ms: int, waited_ms: int) -> None:
    """The person is told at once: it will last longer than they wait without a word."""
    decision = after_failure(outage(1, waited_ms), asked_ms, Patience())
    assert decision == TryAgain(wait_ms=asked_ms, is_told=True)


def test_a_short_wait_that_the_provider_names_does_not_shorten_ours() -> None:
    assert after_failure(outage(4, 7_000), 2_000, Patience()) == TryAgain(wait_ms=8_000)


@pytest.mark.parametrize("asked_ms, waited_ms", [(600_001, 0), (30_001, 570_000)])
def test_a_wait_beyond_the_patience_is_the_end_at_once(asked_ms: int, waited_ms: int) -> None:
    decision = after_failure(outage(1, waited_ms), asked_ms, Patience())
    assert isinstance(decision, GiveUp)
    assert "and asks for a wait of" in decision.words


def test_no_single_wait_is_longer_than_a_turn_may_wait() -> None:
    hour_ms = 60 * MINUTE_MS
    decision = after_failure(outage(1, 0), 11 * MINUTE_MS, Patience(total_ms=hour_ms))
    assert isinstance(decision, GiveUp)


@given(
    total_ms=st.integers(0, 10**8),
    asked_ms=st.none() | st.integers(0, 10**6),
    tries=st.integers(1, 10**6),
    waited_ms=st.integers(0, 2 * 10**8),
)
def test_patience_is_never_exceeded(
    total_ms: int, asked_ms: int | None, tries: int, waited_ms: int
) -> None:
    patience = Patience(total_ms=total_ms)
    decision = after_failure(outage(tries, waited_ms), asked_ms, patience)
    if isinstance(decision, TryAgain):
        assert 0 < decision.wait_ms <= patience.wait_ms_max
        assert waited_ms + decision.wait_ms <= total_ms
        assert asked_ms is None or decision.wait_ms >= asked_ms


def test_the_person_is_told_in_plain_words() -> None:
    words = "The model provider does not answer. I keep trying for up to 10 minutes. /stop ends it."
    assert outage_notice(Patience()) == words
    assert "up to 1 minute." in outage_notice(Patience(total_ms=MINUTE_MS))
    assert "up to 1 min 30 s." in outage_notice(Patience(total_ms=90_000))


def test_why_says_how_long_it_was_tried_and_the_reason() -> None:
    words = standing(outage(6, 52_000), Patience())
    assert words == (
        f"the model provider has not answered for 52 s (6 tries): {SILENT}; "
        "I keep trying for up to 10 minutes"
    )
