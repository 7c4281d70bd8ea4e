"""What an operator looks at: all sessions at once, and none of it dearer because there are many."""

import pytest

from koboshi.domain.ids import TurnId
from koboshi.domain.transcript import Choice, Need
from koboshi.ports.views import Page
from tests.harness.homes import HOOK, WEB, Home

NEWEST = 1 << 62
ALL = Page(limit=50, before=NEWEST)


async def test_boots_are_listed_with_how_each_ended(home: Home) -> None:
    await home.reopen(crash=True)
    await home.reopen(crash=True)

    newest, *others = await home.store.views.workers(ALL)
    page = await home.store.views.workers(Page(limit=1, before=newest.worker_id))

    assert newest.ended_how is None
    assert [worker.ended_how for worker in others] == ["killed", "killed"]
    assert page == (others[0],)


async def test_the_journal_is_read_backwards_page_by_page(home: Home) -> None:
    claim = await home.work_on("hello")
    await home.answer(claim)
    everything = await home.store.views.journal(ALL)

    first = await home.store.views.journal(Page(limit=2, before=NEWEST))
    second = await home.store.views.journal(Page(limit=50, before=first[-1].seq))

    assert first + second == everything
    assert [line.seq for line in everything] == sorted(
        (line.seq for line in everything), reverse=True
    )


async def test_what_recovery_decided_is_found_among_everything_else(home: Home) -> None:
    claim = await home.work_on("hello")
    verdict = await home.die_and_recover(claim.turn_id)

    decided = await home.store.views.journal(Page(limit=50, before=NEWEST, is_open=True))

    told = [(line.turn_id, line.rule) for line in decided if line.subject == "turn"]
    assert told == [(claim.turn_id, verdict.rule)]
    assert {line.subject for line in decided} == {"turn", "worker"}


async def test_turns_of_a_session_are_read_page_by_page(home: Home) -> None:
    for number in range(3):
        await home.answer(await home.work_on(f"question {number}"))
        await home.deliver()
    await home.say("noise", chat="bob")
    session = await home.session_id()

    first = await home.store.views.turns_before(session, before=NEWEST, limit=2)
    second = await home.store.views.turns_before(session, before=first[-1].turn_id, limit=2)

    assert [turn.request for turn in (*first, *second)] == [
        "question 2",
        "question 1",
        "question 0",
    ]


async def test_sessions_are_found_by_how_their_chat_begins_in_every_channel(home: Home) -> None:
    for chat, channel in (("anna", WEB), ("bob", WEB), ("ann", HOOK), ("an", WEB), ("Ann", WEB)):
        await home.say(chat=chat, channel=channel)

    found = await home.store.views.sessions_named("ann", 10)
    few = await home.store.views.sessions_named("", 2)

    assert sorted(session.route.chat for session in found) == ["ann", "anna"]
    assert {session.route.channel for session in found} == {WEB, HOOK}
    assert len(few) == 2
    assert await home.store.views.sessions_named("x", 10) == ()


async def test_chats_are_listed_by_when_something_happened_in_them(home: Home) -> None:
    await home.say("first words of ann", chat="ann")
    await home.say("first words of bob", chat="bob")
    await home.say("elsewhere", chat="eve", channel=HOOK)
    await home.say("ann again", chat="ann")

    chats = await home.store.views.chats(WEB, 10)

    assert [(chat.chat, chat.title, chat.state) for chat in chats] == [
        ("ann", "first words of ann", "queued"),
        ("bob", "first words of bob", "queued"),
    ]


@pytest.mark.parametrize("need", [Need.ANSWER, Need.APPROVAL])
async def test_open_questions_say_who_is_asked_what_and_for_which_turn(
    home: Home, need: Need
) -> None:
    claim = await home.work_on("hello")
    await home.ask(claim, need=need, choices=[Choice(choice_id="1", label="yes")])
    await home.work_on("nothing to ask", chat="bob")

    (question,) = await home.store.views.questions(10)

    assert question.turn.turn_id == claim.turn_id
    assert (question.text, question.choices[0].label) == ("which one?", "yes")
    assert question.is_approval == (need is Need.APPROVAL)
    assert question.expires_ms > question.asked_ms
    await home.say("1", question=question.question, choice="1")
    assert await home.store.views.questions(10) == ()


async def test_the_steps_of_a_turn_are_told_in_order_and_cut_where_they_are_long(
    home: Home,
) -> None:
    claim = await home.work_on("hello")
    await home.step(claim)
    await home.answer(claim, "x" * 20_000)

    steps = await home.store.views.steps_of(claim.turn_id, 50)
    newest = await home.store.views.steps_of(claim.turn_id, 1)

    assert [step.kind for step in steps] == ["message", "reply", "result", "answer"]
    assert steps[2].call_id == steps[1].calls[0].call_id
    assert len(steps[3].text) == 16_001
    assert newest == steps[-1:]
    assert await home.store.views.steps_of(TurnId(99), 50) == ()
