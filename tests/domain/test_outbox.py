"""What a send makes of a delivery, and how a long text becomes parts."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, TurnId
from koboshi.domain.outbox import (
    LACK_MS,
    MOVES_MAX,
    SETTLED,
    STRIKES_MAX,
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
    ending_of,
    resolution_of,
)
from koboshi.domain.route import Route
from koboshi.domain.splitting import split_text

NOW_MS = 1_000_000
LIMITS = DeliveryLimits(age_ms_max=600_000, wait_ms_max=60_000)

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
LOOK_FAILED = Unsure(was_sent=False)


def postponed(delivery: Delivery, outcome: SendOutcome) -> Postpone:
    change = after_send(delivery, outcome, LIMITS)
    assert isinstance(change, Postpone)
    return change


def test_a_delivery_is_either_settled_or_not() -> None:
    assert sorted([*SETTLED, *UNSETTLED]) == sorted(DeliveryState)


def test_what_was_sent_is_delivered_and_has_its_receipt() -> None:
    change = after_send(DELIVERY, Sent(platform_id="m1"), LIMITS)

    assert change == Settle(state=DeliveryState.DELIVERED, platform_id="m1")


def test_what_the_platform_refuses_is_rejected_with_its_reason() -> None:
    change = after_send(DELIVERY, Refused(reason="blocked by the person"), LIMITS)

    assert change == Settle(state=DeliveryState.REJECTED, reason="blocked by the person")


def test_a_chat_that_moved_takes_its_deliveries_along() -> None:
    assert after_send(DELIVERY, Moved(chat="-100"), LIMITS) == Reroute(chat="-100")


@pytest.mark.parametrize("outcome", NOT_YET)
def test_what_did_not_get_through_is_tried_again_later(outcome: SendOutcome) -> None:
    assert postponed(DELIVERY, outcome).wait_ms > 0


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


def waits_of(outcome: SendOutcome, attempts: range) -> list[int]:
    """The pauses after these attempts, each of which ends so."""
    waits: list[int] = []
    for number in attempts:
        waited_ms = waits[-1] if waits else 0
        tried = replace(DELIVERY, attempts=number, unsure=1, waited_ms=waited_ms)
        waits.append(postponed(tried, outcome).wait_ms)
    return waits


def test_the_wait_after_a_send_that_did_not_happen_doubles() -> None:
    waits = waits_of(Later(wait_ms=0), range(1, 15))

    assert waits[:4] == [1_000, 2_000, 4_000, 8_000]
    assert waits[-2:] == [LIMITS.wait_ms_max] * 2


@pytest.mark.parametrize("outcome, first_ms", [(Later(wait_ms=0), 1_000), (LOOK_FAILED, 5_000)])
def test_a_wait_is_never_more_than_twice_the_one_before(
    outcome: SendOutcome, first_ms: int
) -> None:
    """Issue 12, C18: attempts that a crash cut off, or that something of ours was missing for, say
    nothing about the platform. After seven of them an answer waited for five minutes."""
    assert waits_of(outcome, range(8, 11)) == [first_ms, 2 * first_ms, 4 * first_ms]


@pytest.mark.parametrize("attempts", [1, 8, 10_000])
@pytest.mark.parametrize("is_ambiguous", [False, True])
def test_what_is_missing_on_our_side_makes_no_wait_grow(attempts: int, is_ambiguous: bool) -> None:
    """Issue 12, C18: it is over when it is over, and nothing was sent by it."""
    tried = replace(DELIVERY, attempts=attempts, waited_ms=400_000, is_ambiguous=is_ambiguous)
    change = postponed(tried, Later(wait_ms=0, is_lack=True))

    assert change == Postpone(wait_ms=LACK_MS, is_ambiguous=is_ambiguous, reason="")
    look = Unsure(was_sent=False, is_lack=True)
    assert postponed(tried, look) == Postpone(wait_ms=LACK_MS, is_ambiguous=True, reason="")


def test_a_look_that_fails_is_no_strike_and_is_repeated_less_and_less() -> None:
    """Issue 12, A1: a message that was sent once is not given up for five looks that failed."""
    change = postponed(replace(DELIVERY, attempts=2, unsure=1, waited_ms=5_000), LOOK_FAILED)

    assert (change.is_unsure, change.is_ambiguous) == (False, True)
    waits = waits_of(LOOK_FAILED, range(1, 15))
    assert waits[:3] == [5_000, 10_000, 20_000]
    assert waits[-1] == 3_600_000


def test_the_wait_after_unknown_outcomes_doubles_from_five_seconds_to_an_hour() -> None:
    """Issue 12, A1. Attempts that provably failed do not make it longer."""
    waits = [
        postponed(replace(DELIVERY, attempts=90, unsure=unsure), Unsure()).wait_ms
        for unsure in range(12)
    ]

    assert waits[:4] == [5_000, 10_000, 20_000, 40_000]
    assert waits[9:] == [2_560_000, 3_600_000, 3_600_000]


@given(attempts=st.integers(0, 10_000), wait_ms_max=st.integers(1, 10**9))
def test_the_wait_of_our_own_is_bounded(attempts: int, wait_ms_max: int) -> None:
    limits = DeliveryLimits(wait_ms_max=wait_ms_max, unsure_wait_ms_max=wait_ms_max)
    tried = replace(DELIVERY, attempts=attempts, unsure=attempts)
    for outcome in NOT_YET:
        change = after_send(tried, outcome, limits)

        assert isinstance(change, Postpone)
        assert 0 < change.wait_ms <= wait_ms_max


def test_a_platform_that_asks_for_a_longer_wait_gets_it() -> None:
    assert postponed(DELIVERY, Later(wait_ms=90_000)).wait_ms == 90_000


def test_a_platform_that_asks_for_a_shorter_wait_is_not_hurried() -> None:
    change = postponed(replace(DELIVERY, attempts=4, waited_ms=4_000), Later(wait_ms=5))

    assert change.wait_ms == 8_000


@given(
    attempts=st.integers(1, 10_000),
    unsure=st.integers(0, 10_000),
    age_ms=st.integers(0, 10**12),
    is_ambiguous=st.booleans(),
    may_be_duplicate=st.booleans(),
    outcome=st.sampled_from([*NOT_YET, Moved(chat="x")]),
)
def test_an_outcome_that_is_not_final_never_ends_a_delivery(
    attempts: int,
    unsure: int,
    age_ms: int,
    is_ambiguous: bool,
    may_be_duplicate: bool,
    outcome: SendOutcome,
) -> None:
    """Issue 12, A1: an answer was abandoned after two unknown outcomes."""
    delivery = replace(
        DELIVERY,
        attempts=attempts,
        unsure=unsure,
        age_ms=age_ms,
        is_ambiguous=is_ambiguous,
        may_be_duplicate=may_be_duplicate,
    )

    assert isinstance(after_send(delivery, outcome, LIMITS), Postpone | Reroute)


def test_what_was_looked_for_is_not_looked_for_again_after_a_send_that_did_not_happen() -> None:
    """S146: looking costs the platform's patience."""
    labelled = replace(DELIVERY, may_be_duplicate=True)

    assert not postponed(labelled, Later(wait_ms=0)).is_ambiguous
    assert postponed(labelled, Unsure()).is_ambiguous


def test_an_attempt_that_succeeds_at_the_last_moment_counts() -> None:
    late = replace(DELIVERY, attempts=99, age_ms=10**12, strikes=4)

    assert after_send(late, Sent(platform_id="m1"), LIMITS) == Settle(
        state=DeliveryState.DELIVERED, platform_id="m1"
    )


@pytest.mark.parametrize("age_ms", [0, 599_999, 600_000])
def test_a_delivery_may_be_sent_until_it_has_expired(age_ms: int) -> None:
    assert ending_of(replace(DELIVERY, age_ms=age_ms, is_tried=True), LIMITS) is None


def test_a_delivery_that_has_expired_is_not_sent_any_more() -> None:
    """S148; issue 12, A1: and the person is told."""
    change = ending_of(replace(DELIVERY, age_ms=600_001, is_tried=True), LIMITS)

    assert change is not None
    assert change.state is DeliveryState.ABANDONED
    assert change.reason
    assert change.is_told


def test_what_this_boot_has_not_tried_does_not_expire() -> None:
    """Issue 12, A5: after a downtime a delivery gets one try."""
    assert ending_of(replace(DELIVERY, age_ms=10**12), LIMITS) is None


def test_a_poisoned_delivery_is_given_up_and_told() -> None:
    """Issue 12, A1."""
    assert ending_of(replace(DELIVERY, strikes=STRIKES_MAX - 1, unsure=99), LIMITS) is None
    change = ending_of(replace(DELIVERY, strikes=STRIKES_MAX, unsure=9), LIMITS)

    assert change is not None
    assert change.is_told
    assert "9 sends" in (change.reason or "")


def test_a_notice_of_lost_deliveries_outlives_an_outage_and_is_never_told_of() -> None:
    """Issue 12, A1: a notice about notices never exists."""
    notice = replace(DELIVERY, cause="undelivered:7", is_tried=True)

    assert ending_of(replace(notice, age_ms=3 * 86_400_000)) is None
    change = ending_of(replace(notice, age_ms=8 * 86_400_000))
    assert change is not None
    assert not change.is_told


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


@pytest.mark.parametrize(
    "age_ms, finds_sent, resolution",
    [
        (59_999, True, Resolution.REPEAT),
        (60_000, True, Resolution.FIND),
        (60_000, False, Resolution.LABEL),
    ],
)
def test_a_key_that_the_platform_has_forgotten_is_not_relied_on(
    age_ms: int, finds_sent: bool, resolution: Resolution
) -> None:
    """Issue 17: a late repeat under a forgotten key would be said twice."""
    best = resolution_of(
        is_idempotent=True,
        finds_sent=finds_sent,
        holds=False,
        age_ms=age_ms,
        repeat_within_ms=60_000,
    )

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


def test_a_chat_that_keeps_moving_is_followed_with_pauses() -> None:
    delivery = replace(DELIVERY, attempts=MOVES_MAX)

    assert after_send(delivery, Moved(chat="x"), LIMITS) == Reroute(chat="x", wait_ms=1_000)
