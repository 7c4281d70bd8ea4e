"""Threads of schedules that are made by a call: what is known of one, and whose it is."""

from dataclasses import replace

import pytest

from koboshi.domain.ids import ChannelName, DeliveryId, ScheduleId, SessionId
from koboshi.domain.outbox import Delivery, Refused, Resolution, Sent, Unsure, resolution_of
from koboshi.domain.route import Route
from koboshi.domain.threads import (
    AWAITED_TRIES_MAX,
    NAME_CHARS_MAX,
    UNKNOWN,
    are_same,
    first_words,
    of_awaited,
    schedule_named,
)

BEGINNING = Delivery(
    delivery_id=DeliveryId(7),
    session_id=SessionId(2),
    turn_id=None,
    route=Route(channel=ChannelName("telegram:main"), chat="-1001"),
    cause="thread:3",
    part=1,
    parts=1,
    text="news (c3)",
    choices=(),
    question=None,
    anchor="",
    attempts=2,
    created_ms=0,
    is_ambiguous=True,
    may_be_duplicate=False,
)


@pytest.mark.parametrize("attempts", range(1, 7))
@pytest.mark.parametrize("thread", ["", "42"])
def test_a_call_of_unknown_outcome_is_never_sent_again(attempts: int, thread: str) -> None:
    """It has arrived, or it is waited for, or it is given up: no outcome asks for a repeat."""
    outcome = of_awaited(replace(BEGINNING, attempts=attempts), thread)
    if thread:
        assert outcome == Sent(platform_id=thread)
    elif attempts < AWAITED_TRIES_MAX:
        assert isinstance(outcome, Unsure)
        assert not outcome.was_sent
    else:
        assert outcome == Refused(reason=UNKNOWN)


@pytest.mark.parametrize("finds", [False, True])
@pytest.mark.parametrize("holds", [False, True])
def test_whatever_the_owner_wants_of_messages_a_topic_is_awaited(finds: bool, holds: bool) -> None:
    found = resolution_of(is_idempotent=False, finds_sent=finds, holds=holds, begins_once=True)
    assert found is Resolution.AWAIT


@pytest.mark.parametrize("name", ["news", "two\nlines", "👩‍👩‍👧‍👦" * 80, "(c9)", "x" * 200, ""])
def test_the_name_of_a_topic_says_whose_it_is_whatever_the_schedule_is_called(name: str) -> None:
    words = first_words(name, "c3")
    assert len(words) <= NAME_CHARS_MAX
    assert "\n" not in words
    assert schedule_named(words) == ScheduleId(3)
    assert are_same(words, f" {words} ")


@pytest.mark.parametrize("words", ["", "news", "news (c3) too", "news (c)", "(cx)", "c3", "(c-3)"])
def test_other_names_are_no_schedules(words: str) -> None:
    assert schedule_named(words) is None
