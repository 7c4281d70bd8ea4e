"""What works beside the conversation, and reminders that need neither a model nor a turn."""

from dataclasses import replace

import pytest

from koboshi.domain.approver import SentBy
from koboshi.domain.command import Command, CommandName
from koboshi.domain.ids import ScheduleId, Seq
from koboshi.domain.outbox import Delivery
from koboshi.domain.phrases import YES_NO
from koboshi.domain.schedule import ScheduleState
from koboshi.domain.transcript import Need, Note
from koboshi.domain.turn import Claim, TurnState
from koboshi.ports.store import Arrival, Loaded
from tests.harness.homes import WEB, Home, OpenHome, a_world
from tests.harness.timed import (
    AT,
    DAY_MS,
    EVERY,
    HOUR_MS,
    MINUTE_MS,
    Clockwork,
    a_clockwork,
    an_order,
    aside_of,
    said_in,
    types,
)


async def fresh(home: Home) -> tuple[Clockwork, Claim]:
    """A schedule that works beside the conversation, and its claim."""
    clock = await a_clockwork(home)
    await clock.make(an_order(EVERY, place="fresh", name="news"))
    home.clock.move(HOUR_MS)
    assert await clock.fire() == ["due"]
    (claim,) = await home.claims()
    return clock, claim


def seen(loaded: Loaded) -> list[str]:
    return [str(getattr(step.body, "text", "")) for step in loaded.context]


async def test_a_persons_message_never_waits_behind_a_fresh_occasion(home: Home) -> None:
    """A scheduled turn that takes an hour holds up nothing: both are worked on side by side."""
    clock, news = await fresh(home)
    talk = await home.work_on("and you?")
    assert talk.session_id != news.session_id
    await home.answer(talk, "fine")
    assert await clock.told() == ["fine"]
    await home.answer(news, "the news of today")
    (said,) = await said_in(home, news.session_id)
    assert said.text == "the news of today"
    assert str(said.route) == "web:main/ann"


async def test_each_occasion_begins_anew_and_a_reply_goes_on_from_it(home: Home) -> None:
    clock, news = await fresh(home)
    await home.answer(news, "the news of today")
    (said,) = await said_in(home, news.session_id)
    inbound = home.inbound("tell me more")
    words = replace(inbound.words, replies_to=f"p{said.delivery_id}")
    await home.accept(Arrival(inbound=replace(inbound, words=words)))
    (claim,) = await home.claims()
    assert claim.session_id == news.session_id
    assert "the news of today" in seen(await home.store.turns.load(claim))
    await home.answer(claim, "more")
    talk = await home.work_on("hello again")
    assert "the news of today" not in seen(await home.store.turns.load(talk))
    await home.answer(talk)
    home.clock.move(HOUR_MS)
    await clock.fire()
    (again,) = await home.claims()
    assert again.session_id == news.session_id, "one place for all its occasions"
    assert seen(await home.store.turns.load(again)) == []


async def test_a_question_beside_the_conversation_is_answered_by_its_button_only(
    home: Home,
) -> None:
    _, news = await fresh(home)
    await home.ask(news, choices=YES_NO)
    (asked,) = await said_in(home, news.session_id)
    talk = await home.work_on("yes")
    assert talk.session_id != news.session_id, "words alone go to the conversation"
    await home.answer(talk)
    await home.say("", question=asked.question, choice=asked.choices[0].choice_id)
    (claim,) = await home.claims()
    assert claim.turn_id == news.turn_id


async def an_approval_beside(home: Home) -> tuple[Claim, Delivery]:
    _, news = await fresh(home)
    await home.ask(news, need=Need.APPROVAL, choices=YES_NO)
    (asked,) = await said_in(home, news.session_id)
    return news, asked


@pytest.mark.parametrize("way", ["button", "command"])
async def test_a_program_answers_no_approval_beside_the_conversation(home: Home, way: str) -> None:
    news, asked = await an_approval_beside(home)
    inbound = replace(home.inbound("yes"), sent_by=SentBy.PROGRAM)
    if way == "button":
        pressed = Seq(asked.question or 0)
        words = replace(inbound.words, question=pressed, choice_id="yes")
        arrival = Arrival(inbound=replace(inbound, words=words))
    else:
        command = Command(name=CommandName.APPROVE, said="/approve", argument="")
        arrival = Arrival(inbound=inbound, command=command)
    (receipt,) = await home.accept(arrival)
    assert receipt.refused
    assert await home.claims() == ()
    await types(home, "/approve")
    (claim,) = await home.claims()
    assert claim.turn_id == news.turn_id, "a person does, by /approve"


@pytest.mark.parametrize("name", [CommandName.STOP, CommandName.NEW])
async def test_stop_in_the_chat_stops_what_works_beside_it_and_says_so(
    home: Home, name: CommandName
) -> None:
    clock, news = await fresh(home)
    assert "at work: «news»" in await types(home, "/status")
    assert "Stopped: «news»." in await types(home, f"/{name}")
    ((ended,),) = home.sql(f"SELECT state FROM turns WHERE turn_id = {news.turn_id}")
    assert ended == TurnState.STOPPED
    assert await clock.fire() == []
    ((state,),) = home.sql("SELECT state FROM schedules")
    assert state == ScheduleState.ARMED, "the schedule itself stays"


async def test_a_thread_begins_with_its_first_message_and_people_answer_in_it(
    open_home: OpenHome,
) -> None:
    home = await open_home(replace(a_world(), threaded=frozenset({WEB})))
    clock = await a_clockwork(home)
    await clock.make(an_order(EVERY, place="thread", name="news"))
    home.clock.move(HOUR_MS)
    await clock.fire()
    (claim,) = await home.claims()
    own = aside_of(home)
    await home.answer(claim, "the news of today")
    header, news = await said_in(home, own)
    assert (header.text, str(header.route)) == ("news (c1)", "web:main/ann")
    root = f"p{header.delivery_id}"
    assert str(news.route) == f"web:main/ann/{root}"
    await home.reopen(crash=True)
    await home.say("and tomorrow?", thread=root)
    (claim,) = await home.claims()
    assert claim.session_id == own
    assert "the news of today" in seen(await home.store.turns.load(claim))
    await home.answer(claim)
    await said_in(home, own)
    home.clock.move(HOUR_MS)
    await clock.fire()
    (again,) = await home.claims()
    assert again.session_id == own, "the next occasion is in the same thread"
    await home.answer(again, "more news")
    assert [str(each.route) for each in await said_in(home, own)] == [f"web:main/ann/{root}"]


async def test_a_chat_is_listed_once_whatever_works_beside_it(home: Home) -> None:
    _, news = await fresh(home)
    await home.answer(news, "the news of today")
    listed = await home.store.views.chats(WEB, 10)
    assert [each.chat for each in listed] == ["ann"]


async def test_where_there_are_no_threads_a_thread_is_here(home: Home) -> None:
    clock = await a_clockwork(home)
    await clock.make(an_order(EVERY, place="thread"))
    home.clock.move(HOUR_MS)
    await clock.fire()
    (claim,) = await home.claims()
    assert claim.session_id == clock.session_id


async def test_a_message_comes_before_an_occasion_that_waits(home: Home) -> None:
    clock = await a_clockwork(home)
    await clock.make(an_order(EVERY))
    working = await home.work_on("long work")
    home.clock.move(HOUR_MS)
    await clock.fire()
    await home.say("and this")
    await home.answer(working)
    (claim,) = await home.claims()
    loaded = await home.store.turns.load(claim)
    assert [getattr(step.body, "text", "") for step in loaded.steps] == ["and this"]


async def reminded(home: Home) -> Clockwork:
    clock = await a_clockwork(home)
    await clock.make(an_order(AT, name="tea", prompt="the tea is ready", is_plain=True))
    return clock


@pytest.mark.parametrize("is_busy", [False, True])
async def test_a_reminder_is_told_at_its_time_without_a_turn_or_a_model(
    home: Home, is_busy: bool
) -> None:
    """Even while a turn hangs. The row, the words and the end of the schedule are one commit."""
    clock = await reminded(home)
    if is_busy:
        await home.work_on("long work")
    turns = len(await home.turns())
    home.clock.move(HOUR_MS)
    assert await clock.fire() == ["due"]
    await home.reopen(crash=True)
    assert await clock.fire() == []
    assert await clock.told() == ["Reminder: the tea is ready"]
    assert len(await home.turns()) == turns
    assert await clock.verdicts(ScheduleId(1)) == [("fired", "due", 1)]


async def test_a_late_reminder_says_how_late_and_one_that_is_much_too_late_asks(
    home: Home,
) -> None:
    clock = await reminded(home)
    home.clock.move(HOUR_MS + 41 * MINUTE_MS)
    assert await clock.fire() == ["late"]
    assert await clock.told() == ["Reminder, due 09:00, 41 min ago: the tea is ready"]
    expression = "2027-01-15T12:00:00+00:00"
    await clock.make(an_order(AT, expression, prompt="lunch", is_plain=True))
    home.clock.move(3 * DAY_MS)
    assert await clock.fire() == ["too-late-ask"]
    await clock.told()
    await home.say("Run now")
    loaded = await home.store.turns.load(await home.claim())
    plain = [step.body for step in loaded.steps if getattr(step.body, "is_plain", False)]
    assert [getattr(body, "text", "") for body in plain] == ["lunch"], "told without a model"


async def test_the_model_hears_of_reminders_before_the_next_words_of_the_person(
    home: Home,
) -> None:
    clock = await reminded(home)
    home.clock.move(HOUR_MS)
    await clock.fire()
    await clock.told()
    loaded = await home.store.turns.load(await home.work_on("done, thank you"))
    (note,) = [step.body.text for step in loaded.steps if isinstance(step.body, Note)]
    assert "09:00 «tea» (c1)" in note


async def test_reminders_are_noted_once(home: Home) -> None:
    clock = await reminded(home)
    home.clock.move(HOUR_MS)
    await clock.fire()
    home.clock.move(MINUTE_MS)
    await home.answer(await home.work_on("done, thank you"))
    loaded = await home.store.turns.load(await home.work_on("what else?"))
    assert not [step for step in loaded.steps if isinstance(step.body, Note)]
