"""What a send makes of a delivery, and how a long text becomes parts."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, TurnId
from koboshi.domain.outbox import (
    SETTLED,
    UNSETTLED,
    Delivery,
    DeliveryLimits,
    DeliveryState,
    Later,
    Moved,
    Postpone,
    Refused,
    Reroute,
    Resolution,
    SendOutcome,
    Sent,
    Settle,
    Unsure,
    after_send,
    expiry_of,
    resolution_of,
    split_text,
)
from koboshi.domain.route import Route

NOW_MS = 1_000_000
LIMITS = DeliveryLimits(attempts_max=5, age_ms_max=600_000, wait_ms_max=60_000)

DELIVERY = Delivery(
    delivery_id=DeliveryId(1),
    session_id=SessionId(1),
    turn_id=TurnId(1),
    route=Route(channel=ChannelName("telegram:main"), chat="42"),
    cause="step:9",
    part=1,
    parts=1,
    text="hello",
    choices=(),
    question=None,
    anchor="",
    attempts=1,
    created_ms=NOW_MS,
    is_ambiguous=False,
    may_be_duplicate=False,
)

NOT_YET: tuple[SendOutcome, ...] = (Later(wait_ms=0, reason="flood"), Unsure(reason="timeout"))


def postponed(delivery: Delivery, outcome: SendOutcome) -> Postpone:
    change = after_send(delivery, outcome, NOW_MS, LIMITS)
    assert isinstance(change, Postpone)
    return change


def test_a_delivery_is_either_settled_or_not() -> None:
    assert sorted([*SETTLED, *UNSETTLED]) == sorted(DeliveryState)


def test_what_was_sent_is_delivered_and_has_its_receipt() -> None:
    change = after_send(DELIVERY, Sent(platform_id="m1"), NOW_MS, LIMITS)

    assert change == Settle(state=DeliveryState.DELIVERED, platform_id="m1")


def test_what_the_platform_refuses_is_rejected_with_its_reason() -> None:
    change = after_send(DELIVERY, Refused(reason="blocked by the person"), NOW_MS, LIMITS)

    assert change == Settle(state=DeliveryState.REJECTED, reason="blocked by the person")


def test_a_chat_that_moved_takes_its_deliveries_along() -> None:
    assert after_send(DELIVERY, Moved(chat="-100"), NOW_MS, LIMITS) == Reroute(chat="-100")


@pytest.mark.parametrize("outcome", NOT_YET)
def test_what_did_not_get_through_is_tried_again_later(outcome: SendOutcome) -> None:
    assert postponed(DELIVERY, outcome).not_before_ms > NOW_MS


@pytest.mark.parametrize(
    "outcome, reason", [(Later(wait_ms=0, reason="flood"), "flood"), (Unsure(reason="eof"), "eof")]
)
def test_a_postponement_keeps_its_reason(outcome: SendOutcome, reason: str) -> None:
    assert postponed(DELIVERY, outcome).reason == reason


def test_a_send_that_provably_did_not_happen_is_not_ambiguous() -> None:
    """S146: it is repeated plainly."""
    assert not postponed(DELIVERY, Later(wait_ms=0)).is_ambiguous


def test_a_send_of_unknown_outcome_is_ambiguous() -> None:
    """S146."""
    assert postponed(DELIVERY, Unsure()).is_ambiguous


@pytest.mark.parametrize("outcome", NOT_YET)
def test_an_ambiguous_delivery_stays_ambiguous(outcome: SendOutcome) -> None:
    """S146: a later attempt that fails for sure says nothing about the earlier one."""
    assert postponed(replace(DELIVERY, is_ambiguous=True), outcome).is_ambiguous


@pytest.mark.parametrize("attempts, wait_ms", [(1, 1_000), (2, 2_000), (3, 4_000), (4, 8_000)])
def test_the_wait_doubles_with_every_attempt(attempts: int, wait_ms: int) -> None:
    change = postponed(replace(DELIVERY, attempts=attempts), Unsure())

    assert change.not_before_ms == NOW_MS + wait_ms


@given(attempts=st.integers(0, 10_000), wait_ms_max=st.integers(1, 10**9))
def test_the_wait_of_our_own_is_bounded(attempts: int, wait_ms_max: int) -> None:
    limits = DeliveryLimits(attempts_max=10_001, wait_ms_max=wait_ms_max)
    change = after_send(replace(DELIVERY, attempts=attempts), Unsure(), NOW_MS, limits)

    assert isinstance(change, Postpone)
    assert NOW_MS < change.not_before_ms <= NOW_MS + wait_ms_max


def test_a_platform_that_asks_for_a_longer_wait_gets_it() -> None:
    assert postponed(DELIVERY, Later(wait_ms=90_000)).not_before_ms == NOW_MS + 90_000


def test_a_platform_that_asks_for_a_shorter_wait_is_not_hurried() -> None:
    change = postponed(replace(DELIVERY, attempts=4), Later(wait_ms=5))

    assert change.not_before_ms == NOW_MS + 8_000


@pytest.mark.parametrize("outcome", NOT_YET)
@pytest.mark.parametrize("attempts, is_given_up", [(4, False), (5, True), (6, True)])
def test_the_number_of_attempts_is_bounded(
    outcome: SendOutcome, attempts: int, is_given_up: bool
) -> None:
    """S148."""
    change = after_send(replace(DELIVERY, attempts=attempts), outcome, NOW_MS, LIMITS)

    assert isinstance(change, Settle) == is_given_up


@pytest.mark.parametrize("outcome", NOT_YET)
@pytest.mark.parametrize(
    "age_ms, is_given_up", [(599_999, False), (600_000, False), (600_001, True)]
)
def test_the_age_of_a_delivery_is_bounded(
    outcome: SendOutcome, age_ms: int, is_given_up: bool
) -> None:
    """S148."""
    change = after_send(DELIVERY, outcome, DELIVERY.created_ms + age_ms, LIMITS)

    assert isinstance(change, Settle) == is_given_up


@pytest.mark.parametrize(
    "given_up", [replace(DELIVERY, attempts=5), replace(DELIVERY, created_ms=0)]
)
def test_what_is_given_up_is_abandoned_with_a_reason(given_up: Delivery) -> None:
    change = after_send(given_up, Unsure(), NOW_MS, LIMITS)

    assert isinstance(change, Settle)
    assert change.state is DeliveryState.ABANDONED
    assert change.reason


def test_an_attempt_that_succeeds_at_the_last_moment_counts() -> None:
    late = replace(DELIVERY, attempts=99, created_ms=0)

    assert after_send(late, Sent(platform_id="m1"), NOW_MS, LIMITS) == Settle(
        state=DeliveryState.DELIVERED, platform_id="m1"
    )


@pytest.mark.parametrize("age_ms", [0, 599_999, 600_000])
def test_a_delivery_may_be_sent_until_it_has_expired(age_ms: int) -> None:
    assert expiry_of(DELIVERY, DELIVERY.created_ms + age_ms, LIMITS) is None


def test_a_delivery_that_has_expired_is_not_sent_any_more() -> None:
    """S148."""
    change = expiry_of(DELIVERY, DELIVERY.created_ms + 600_001, LIMITS)

    assert change is not None
    assert change.state is DeliveryState.ABANDONED
    assert change.reason


@pytest.mark.parametrize(
    "is_idempotent, finds_sent, holds, resolution",
    [
        (True, True, True, Resolution.REPEAT),
        (True, False, False, Resolution.REPEAT),
        (False, True, False, Resolution.FIND),
        (False, False, True, Resolution.HOLD),
        (False, False, False, Resolution.LABEL),
    ],
)
def test_an_unknown_outcome_is_resolved_by_the_best_that_the_platform_allows(
    is_idempotent: bool, finds_sent: bool, holds: bool, resolution: Resolution
) -> None:
    """S146: only a platform that can neither repeat nor find makes us label a duplicate."""
    best = resolution_of(is_idempotent=is_idempotent, finds_sent=finds_sent, holds=holds)

    assert best is resolution


WORD = st.integers(0, 150).map(lambda length: "x" * length)
MARK = st.sampled_from(["\n\n", "\n", ". ", " "])
LONG_TEXT = st.lists(WORD | MARK | st.text(max_size=20), max_size=20).map("".join)
LIMIT = st.integers(100, 300)


@given(LONG_TEXT, LIMIT)
@settings(deadline=None)
def test_joining_the_parts_gives_the_text_back(text: str, limit: int) -> None:
    assert "".join(split_text(text, limit)) == text


@given(LONG_TEXT, LIMIT)
@settings(deadline=None)
def test_no_part_is_longer_than_the_limit(text: str, limit: int) -> None:
    assert max(map(len, split_text(text, limit))) <= limit


@given(LONG_TEXT.filter(bool), LIMIT)
@settings(deadline=None)
def test_no_part_of_a_text_is_empty(text: str, limit: int) -> None:
    assert all(split_text(text, limit))


@given(LONG_TEXT, LIMIT)
@settings(deadline=None)
def test_parts_are_at_least_half_as_long_as_they_may_be(text: str, limit: int) -> None:
    *filled, _rest = split_text(text, limit)

    assert all(len(part) > limit // 2 for part in filled)


def test_an_empty_text_is_one_empty_part() -> None:
    assert split_text("", 100) == ("",)


@pytest.mark.parametrize("length", [1, 99, 100])
def test_a_text_that_fits_is_one_part(length: int) -> None:
    assert split_text("x" * length, 100) == ("x" * length,)


def test_a_paragraph_end_is_preferred_to_a_later_line_end() -> None:
    text = "p" * 60 + "\n\n" + "l" * 20 + "\n" + "w" * 10 + ". " + "v" * 60

    assert split_text(text, 100)[0] == "p" * 60 + "\n\n"


def test_a_line_end_is_preferred_to_a_later_sentence_end() -> None:
    text = "l" * 60 + "\n" + "s" * 20 + ". " + "v" * 60

    assert split_text(text, 100)[0] == "l" * 60 + "\n"


def test_a_sentence_end_is_preferred_to_a_later_space() -> None:
    text = "s" * 60 + ". " + "w" * 20 + " " + "v" * 60

    assert split_text(text, 100)[0] == "s" * 60 + ". "


def test_a_space_is_preferred_to_the_middle_of_a_word() -> None:
    assert split_text("w" * 60 + " " + "v" * 60, 100)[0] == "w" * 60 + " "


def test_a_paragraph_end_in_the_first_half_is_not_worth_a_short_part() -> None:
    text = "p" * 45 + "\n\n" + "w" * 35 + " " + "v" * 60

    assert split_text(text, 100)[0] == text[:83]


def test_every_part_prefers_a_paragraph_end_of_its_own() -> None:
    paragraph = "p" * 60 + "\n\n"

    assert split_text(paragraph * 4, 100) == (paragraph,) * 4


def test_a_word_longer_than_a_part_is_cut() -> None:
    assert split_text("x" * 250, 100) == ("x" * 100, "x" * 100, "x" * 50)


def test_unreadably_short_parts_are_refused() -> None:
    with pytest.raises(ValueError, match="less than 100"):
        split_text("hello", 99)


def test_a_text_that_was_sent_again_with_its_label_is_not_sent_a_third_time() -> None:
    """S146: one visible possible duplicate, not a row of them."""
    labelled = replace(DELIVERY, is_ambiguous=True, may_be_duplicate=True)

    change = after_send(labelled, Unsure(), NOW_MS, LIMITS)

    assert isinstance(change, Settle)
    assert change.state is DeliveryState.ABANDONED


def test_a_chat_that_keeps_moving_is_given_up() -> None:
    delivery = replace(DELIVERY, attempts=LIMITS.attempts_max)

    assert isinstance(after_send(delivery, Moved(chat="x"), NOW_MS, LIMITS), Settle)


def test_an_outage_uses_up_the_age_and_not_the_attempts() -> None:
    """S145, S148: an outage of hours must not eat the answer."""
    now_ms = 0
    for attempts in range(1, 10_000):
        delivery = replace(DELIVERY, created_ms=0, attempts=attempts)
        change = after_send(delivery, Later(wait_ms=0), now_ms)
        if not isinstance(change, Postpone):
            break
        now_ms = change.not_before_ms

    assert now_ms > 24 * 3_600_000
