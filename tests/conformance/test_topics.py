"""A thread that is made by a call: once for a schedule, killed at whatever moment."""

from dataclasses import replace

import pytest

from koboshi.domain.ids import SessionId
from koboshi.domain.outbox import (
    Delivery,
    DeliveryState,
    Refused,
    SendOutcome,
    Sent,
    Unsure,
    after_send,
)
from koboshi.domain.threads import UNKNOWN, of_awaited
from koboshi.domain.time_words import why_schedule
from koboshi.domain.turn import Claim
from koboshi.ports.store import Arrival
from tests.harness.homes import WEB, Home, OpenHome, a_world
from tests.harness.timed import (
    EVERY,
    HOUR_MS,
    MINUTE_MS,
    Clockwork,
    a_clockwork,
    an_order,
    aside_of,
    said_in,
)

TOPIC = "42"
NO_RIGHT = "the bot may not make topics here; make it an administrator"


async def topical(open_home: OpenHome) -> tuple[Home, Clockwork, Claim]:
    """A home on a platform with topics, and a schedule that wants one and has just fired."""
    channels = frozenset({WEB})
    home = await open_home(replace(a_world(), threaded=channels, topical=channels))
    clock = await a_clockwork(home)
    await clock.make(an_order(EVERY, place="thread", name="news"))
    home.clock.move(HOUR_MS)
    await clock.fire()
    (claim,) = await home.claims()
    return home, clock, claim


async def begins(home: Home, own: SessionId) -> Delivery:
    """The delivery that begins the topic, claimed: the call is under way."""
    delivery = await home.store.outbox.claim(own, home.worker.worker_id)
    assert isinstance(delivery, Delivery)
    assert delivery.begins_thread
    return delivery


async def comes_to(home: Home, delivery: Delivery, outcome: SendOutcome) -> None:
    change = after_send(delivery, outcome)
    await home.store.outbox.settle(delivery, home.worker.worker_id, change)


async def told_of(home: Home, name: str = "news (c1)", thread: str = TOPIC) -> None:
    """The platform tells of a topic that we have made."""
    inbound = home.inbound("", person="bot", thread=thread)
    inbound = replace(inbound, begins=name, ignored="topic-made")
    await home.accept(Arrival(inbound=inbound, ignored="topic-made"))


async def waited_for(home: Home, own: SessionId) -> list[SendOutcome]:
    """What the looks at a call of unknown outcome come to, until one of them is final."""
    seen: list[SendOutcome] = []
    for _ in range(10):
        home.clock.move(MINUTE_MS)
        delivery = await home.store.outbox.claim(own, home.worker.worker_id)
        if not isinstance(delivery, Delivery) or not delivery.begins_thread:
            break
        assert delivery.is_ambiguous, "never as if it were new"
        outcome = of_awaited(delivery, await home.store.schedules.thread_begun_by(delivery))
        await comes_to(home, delivery, outcome)
        seen.append(outcome)
        if not isinstance(outcome, Unsure):
            break
    return seen


def causes(home: Home) -> list[str]:
    rows = home.sql("SELECT cause FROM outbox WHERE cause LIKE '%thread:%' ORDER BY delivery_id")
    return [str(cause) for (cause,) in rows]


async def next_place(home: Home, clock: Clockwork) -> SessionId:
    """Where the next occasion is worked on."""
    home.clock.move(HOUR_MS)
    await clock.fire()
    (claim,) = await home.claims()
    await home.answer(claim, "more news")
    return claim.session_id


async def test_the_schedule_works_in_its_topic_and_makes_no_second_one(open_home: OpenHome) -> None:
    home, clock, claim = await topical(open_home)
    own = aside_of(home)
    await comes_to(home, await begins(home, own), Sent(platform_id=TOPIC))
    await told_of(home)
    await home.answer(claim, "the news of today")
    assert [str(each.route) for each in await said_in(home, own)] == [f"web:main/ann/{TOPIC}"]
    assert await next_place(home, clock) == own
    assert causes(home) == ["thread:1"]


async def test_a_schedule_made_in_a_topic_gets_one_of_its_own(open_home: OpenHome) -> None:
    channels = frozenset({WEB})
    home = await open_home(replace(a_world(), threaded=channels, topical=channels))
    await home.say("hello", thread="7")
    (claim,) = await home.claims()
    await home.answer(claim)
    clock = Clockwork(home=home, session_id=claim.session_id)
    await clock.make(an_order(EVERY, place="thread", name="news"))
    home.clock.move(HOUR_MS)
    await clock.fire()
    own = aside_of(home)
    await comes_to(home, await begins(home, own), Sent(platform_id=TOPIC))
    (claim,) = await home.claims()
    await home.answer(claim, "the news of today")
    assert [str(each.route) for each in await said_in(home, own)] == [f"web:main/ann/{TOPIC}"]


async def test_killed_before_the_call_it_is_made_as_if_nothing_had_been(
    open_home: OpenHome,
) -> None:
    home, _, _ = await topical(open_home)
    own = aside_of(home)
    await home.reopen(crash=True)
    delivery = await begins(home, own)
    assert not delivery.is_ambiguous, "certainly not called yet"


@pytest.mark.parametrize("is_told", ["before the look", "never", "after it was given up"])
async def test_killed_during_the_call_there_is_no_second_one(
    open_home: OpenHome, is_told: str
) -> None:
    """Whether the platform has made it is unknown. It tells of it by itself, or it does not."""
    home, clock, claim = await topical(open_home)
    own = aside_of(home)
    await home.answer(claim, "the news of today")
    await begins(home, own)
    await home.reopen(crash=True)
    if is_told == "before the look":
        await told_of(home)
        await home.reopen(crash=True)
        assert await waited_for(home, own) == [Sent(platform_id=TOPIC)]
        assert [str(each.route) for each in await said_in(home, own)] == [f"web:main/ann/{TOPIC}"]
        assert await next_place(home, clock) == own
        return
    outcomes = await waited_for(home, own)
    assert outcomes[-1] == Refused(reason=UNKNOWN)
    told = [each.text for each in await said_in(home, own)]
    assert len([each for each in told if UNKNOWN in each]) == 1
    assert "the news of today" in told
    await home.reopen(crash=True)
    if is_told == "never":
        assert await next_place(home, clock) == clock.session_id
        assert UNKNOWN in why_schedule(await clock.get_only())
    else:
        await told_of(home)
        (late,) = await said_in(home, own)
        assert str(late.route) == f"web:main/ann/{TOPIC}"
        assert await next_place(home, clock) == own
        assert "no thread" not in why_schedule(await clock.get_only())
    assert causes(home).count("thread:1") == 1


async def test_told_while_the_call_is_open_it_is_settled_once(open_home: OpenHome) -> None:
    """The platform tells of it before it answers; then the answer is lost."""
    home, _, _ = await topical(open_home)
    own = aside_of(home)
    delivery = await begins(home, own)
    await told_of(home)
    await comes_to(home, delivery, Unsure(reason="no answer"))
    assert await waited_for(home, own) == [Sent(platform_id=TOPIC)]
    ((state, platform_id),) = home.sql(
        "SELECT state, platform_id FROM outbox WHERE cause = 'thread:1'"
    )
    assert (state, platform_id) == (DeliveryState.DELIVERED, TOPIC)


async def test_told_at_the_moment_it_is_given_up_the_topic_counts(open_home: OpenHome) -> None:
    home, clock, _ = await topical(open_home)
    own = aside_of(home)
    delivery = await begins(home, own)
    await told_of(home)
    await comes_to(home, delivery, Refused(reason=UNKNOWN))
    assert (await clock.get_only()).thread_why is None
    assert await said_in(home, own) == []


async def test_refused_it_is_told_once_with_the_remedy_and_works_here(open_home: OpenHome) -> None:
    home, clock, claim = await topical(open_home)
    own = aside_of(home)
    await comes_to(home, await begins(home, own), Refused(reason=NO_RIGHT))
    await home.answer(claim, "the news of today")
    told = [each.text for each in await said_in(home, own)]
    assert [NO_RIGHT in each for each in told] == [True, False]
    for _ in range(2):
        await home.reopen(crash=True)
        assert await next_place(home, clock) == clock.session_id
        assert await clock.told() == ["more news"]
    assert causes(home) == ["thread:1", "no-thread:1"]
    assert NO_RIGHT in why_schedule(await clock.get_only())


@pytest.mark.parametrize(
    "name, thread",
    [("news (c2)", TOPIC), ("olds (c1)", TOPIC), ("news", TOPIC), ("news (c1)", "")],
)
async def test_a_topic_of_another_name_is_not_taken_for_it(
    open_home: OpenHome, name: str, thread: str
) -> None:
    home, _clock, _ = await topical(open_home)
    delivery = await begins(home, aside_of(home))
    await told_of(home, name, thread)
    assert await home.store.schedules.thread_begun_by(delivery) == ""


async def test_a_topic_is_not_taken_for_one_that_was_never_asked_for(open_home: OpenHome) -> None:
    """A database that went back knows nothing of a call that its future made."""
    home, _, _ = await topical(open_home)
    await told_of(home)
    delivery = await begins(home, aside_of(home))
    assert await home.store.schedules.thread_begun_by(delivery) == ""


async def test_given_up_after_a_day_it_works_here_and_no_loss_is_told(open_home: OpenHome) -> None:
    home, clock, _ = await topical(open_home)
    own = aside_of(home)
    await comes_to(home, await begins(home, own), Unsure(reason="no answer"))
    home.clock.move(25 * HOUR_MS)
    assert not isinstance(await home.store.outbox.claim(own, home.worker.worker_id), Delivery)
    (told,) = await said_in(home, own)
    assert "works in this conversation" in told.text
    assert (await clock.get_only()).thread_why is not None
