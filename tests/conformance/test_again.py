"""The operator drops what waits, and has asked again what was not answered: each once."""

from dataclasses import replace

import pytest

from koboshi.commands import run
from koboshi.domain.command import ActionStanding, Command, CommandName, OperatorAction
from koboshi.domain.files import Attachment
from koboshi.domain.ids import EntryId
from koboshi.domain.inbox import EntryState
from koboshi.domain.retry import Again, Retried
from koboshi.domain.session import Busy
from koboshi.domain.transcript import Message
from koboshi.domain.turn import TurnState
from koboshi.ports.channel import Receipt
from koboshi.ports.store import Arrival
from koboshi.ports.views import EntryView
from koboshi.ports.wakeups import TURNS
from tests.harness.backends import nth_code
from tests.harness.fake_time import DAY_MS
from tests.harness.homes import FRONT, Home, OpenHome, a_call, a_world

PICTURE = Attachment(reference="f1", path="received/1-cat.jpg", kind="picture")


async def retry(home: Home, receipt: Receipt) -> Retried:
    retried = await home.store.inbox.retry(receipt.entry_id)
    assert retried is not None
    return retried


async def refused(home: Home, receipt: Receipt) -> Again:
    """Why it is not asked again; nothing was written."""
    before = await home.everything()
    retried = await retry(home, receipt)
    assert retried.entry_id is None
    assert await home.everything() == before
    return retried.how


async def asking(home: Home, retried: Retried) -> EntryView:
    assert retried.entry_id is not None
    found = await home.store.views.entry(retried.entry_id)
    assert found is not None
    return found


async def retry_in_the_chat(home: Home) -> None:
    command = Command(name=CommandName.RETRY, said="/retry")
    await home.accept(Arrival(inbound=home.inbound("/retry"), command=command), respond=run.respond)


async def words_of(home: Home) -> list[str]:
    """What the next turn that is claimed was asked."""
    steps = (await home.store.turns.load(await home.claim())).steps
    return [step.body.text for step in steps if isinstance(step.body, Message)]


# ── drop ────────────────────────────────────────────────────────────────────────────────────────


async def test_what_waits_is_dropped_once_and_never_taken_up(home: Home) -> None:
    claim = await home.work_on("one")
    waits = await home.say("two")

    assert await home.store.inbox.drop(waits.entry_id)
    assert not await home.store.inbox.drop(waits.entry_id)

    entry = await home.entry(waits)
    assert (entry.state, entry.reason) == ("dropped", "by-hand")
    lines = [each.line for each in await home.events() if each.line.event == "dropped"]
    assert [(line.number, line.reason) for line in lines] == [(waits.entry_id, "by-hand")]
    await home.answer(claim)
    assert await home.claims() == ()


async def test_what_is_in_a_turn_is_never_dropped(home: Home) -> None:
    begun = await home.say("one")
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call("a"))
    await home.store.turns.ask(claim, call_id, "?", (), DAY_MS)
    replied = await home.say("yes")
    command = await home.command(CommandName.STATUS)
    before = await home.everything()

    for receipt in (begun, replied, command):
        assert not await home.store.inbox.drop(receipt.entry_id)
    assert not await home.store.inbox.drop(EntryId(999))
    assert await home.everything() == before


async def test_no_one_is_told_that_a_message_waits_which_was_dropped(home: Home) -> None:
    """Every acknowledgement is true when it is sent."""
    await home.work_on("one")
    inbound = home.inbound("two")
    queued = replace(inbound, words=replace(inbound.words, busy=Busy.QUEUE))
    (waits,) = await home.accept(Arrival(inbound=queued))
    assert await home.store.inbox.drop(waits.entry_id)

    assert await home.deliver() == []


# ── retry ───────────────────────────────────────────────────────────────────────────────────────


async def test_what_was_dropped_by_hand_is_asked_once_in_a_turn_of_its_own(home: Home) -> None:
    claim = await home.work_on("one")
    waits = await home.say("two")
    await home.store.inbox.drop(waits.entry_id)
    first, again = await retry(home, waits), await retry(home, waits)

    assert (first.how, first.is_new, again.is_new) == (Again.UNHEARD, True, False)
    assert first.entry_id == again.entry_id
    asked = await asking(home, first)
    assert (asked.source, asked.external_id, asked.state) == ("retry", "m2", "waiting")
    await home.answer(claim)
    assert await words_of(home) == ["two"]
    assert (await home.entry(waits)).state == "dropped"


async def test_what_was_cut_is_asked_in_the_generation_that_there_is(home: Home) -> None:
    await home.work_on("one")
    cut = await home.say("two")
    await home.stop()
    home.wakeups.forget(TURNS)
    retried = await retry(home, cut)

    assert retried.how is Again.UNHEARD
    assert home.wakeups.count(TURNS)
    assert await words_of(home) == ["two"]


async def test_what_came_to_a_full_inbox_is_asked_when_there_is_room(open_home: OpenHome) -> None:
    home = await open_home(waiting_max=1)
    claim = await home.work_on("one")
    await home.say("two")
    turned_away = await home.say("three")
    assert turned_away.state is EntryState.DROPPED

    assert await refused(home, turned_away) is Again.FULL
    await home.answer(claim)
    assert (await retry(home, turned_away)).how is Again.UNHEARD
    assert await words_of(home) == ["two"]


@pytest.mark.parametrize("end", ["failed", "dropped", "stopped"])
async def test_a_turn_without_an_answer_is_asked_again_with_all_its_words(
    home: Home, end: str
) -> None:
    message = await home.say("one")
    claim = await home.claim()
    match end:
        case "failed":
            await home.store.turns.fail(claim, "it broke")
        case "dropped":
            await home.store.turns.release(claim)
            assert (
                await home.store.turns.will(claim.turn_id, OperatorAction.DROP)
                is ActionStanding.LEFT
            )
        case _:
            await home.stop()
    first, again = await retry(home, message), await retry(home, message)

    assert (first.how, first.is_new, again.is_new) == (Again.UNANSWERED, True, False)
    assert first.entry_id == again.entry_id
    assert (await asking(home, first)).external_id == str(claim.turn_id)
    assert await words_of(home) == ["one"]
    assert len(await home.turns()) == 2


async def test_the_operator_and_the_person_do_not_ask_the_same_twice(home: Home) -> None:
    """What `/retry` has asked again is what `inbox retry` finds, by the same key."""
    message = await home.say("one")
    await home.store.turns.fail(await home.claim(), "it broke")
    await retry_in_the_chat(home)
    retried = await retry(home, message)

    assert not retried.is_new
    assert (await asking(home, retried)).source == "retry"
    assert [turn.request for turn in await home.turns()] == ["one", "one"]


async def test_what_asked_again_can_be_asked_again(home: Home) -> None:
    message = await home.say("one")
    await home.store.turns.fail(await home.claim(), "it broke")
    first = await retry(home, message)
    await home.store.turns.fail(await home.claim(), "it broke again")
    assert first.entry_id is not None
    second = await home.store.inbox.retry(first.entry_id)

    assert second is not None
    assert second.is_new
    assert await words_of(home) == ["one"]


@pytest.mark.parametrize("text", ["what is it?", ""])
@pytest.mark.parametrize("is_in_the_chat", [True, False])
async def test_files_are_asked_again_with_their_words(
    home: Home, text: str, is_in_the_chat: bool
) -> None:
    inbound = home.inbound(text)
    with_file = replace(inbound, words=replace(inbound.words, files=(PICTURE,)))
    (message,) = await home.accept(Arrival(inbound=with_file))
    await home.store.turns.fail(await home.claim(), "it broke")
    if is_in_the_chat:
        await retry_in_the_chat(home)
    else:
        await retry(home, message)

    steps = (await home.store.turns.load(await home.claim())).steps
    (said,) = [step.body for step in steps if isinstance(step.body, Message)]
    assert (said.text, said.files) == (text, (PICTURE,))


@pytest.mark.parametrize("is_delivered", [False, True])
async def test_another_answer_is_asked_for_once_with_the_words_and_files(
    home: Home, is_delivered: bool
) -> None:
    """A second press, and a kill behind the commit, change nothing."""
    inbound = home.inbound("what is it?")
    with_file = replace(inbound, words=replace(inbound.words, files=(PICTURE,)))
    (message,) = await home.accept(Arrival(inbound=with_file))
    claim = await home.claim()
    await home.answer(claim, "a cat")
    if is_delivered:
        await home.deliver()
    first = await home.store.inbox.retry(message.entry_id, wants_anew=True)
    await home.reopen(crash=True)
    second = await home.store.inbox.retry(message.entry_id, wants_anew=True)

    assert first is not None
    assert second is not None
    assert (first.how, first.is_new, second.is_new) == (Again.ANEW, True, False)
    assert first.entry_id == second.entry_id
    steps = (await home.store.turns.load(await home.claim())).steps
    (said,) = [step.body for step in steps if isinstance(step.body, Message)]
    assert (said.text, said.files, said.sender) == ("what is it?", (PICTURE,), "ann")
    assert len(await home.turns()) == 2


async def test_another_answer_can_be_asked_for_again(home: Home) -> None:
    message = await home.say("one")
    for _ in range(3):
        await home.answer(await home.claim())
        retried = await home.store.inbox.retry(message.entry_id, wants_anew=True)
        assert retried is not None
        assert retried.is_new
        assert retried.entry_id is not None
        message = replace(message, entry_id=retried.entry_id)
    assert await words_of(home) == ["one"]


async def test_what_waits_runs_or_was_answered_is_refused(home: Home) -> None:
    begun = await home.say("one")
    assert await refused(home, begun) is Again.AT_WORK
    claim = await home.claim()
    waits = await home.say("two")
    command = await home.command(CommandName.STATUS)
    assert await refused(home, begun) is Again.AT_WORK
    assert await refused(home, waits) is Again.WAITS
    assert await refused(home, command) is Again.COMMAND
    await home.answer(claim)
    assert await refused(home, begun) is Again.ANSWERED
    await home.deliver()
    assert (await home.view(claim.turn_id)).state == TurnState.DONE
    assert await refused(home, begun) is Again.ANSWERED
    assert await home.store.inbox.retry(EntryId(999)) is None


async def test_a_button_of_a_closed_question_is_refused(home: Home) -> None:
    late = await home.say("", question=1, choice="a")
    assert late.state is EntryState.DROPPED
    assert await refused(home, late) is Again.PRESSED


async def test_a_stranger_is_asked_for_once_they_are_let_in(home: Home) -> None:
    """In the chat where they wrote, although their words were in no session."""
    knock = await home.knock("eve", "what is the time?")
    assert await refused(home, knock) is Again.NOT_SERVED
    assert await home.store.people.approve(nth_code(1))
    retried = await retry(home, knock)

    assert retried.how is Again.UNHEARD
    assert [turn.request for turn in await home.turns("eve", FRONT)] == ["what is the time?"]
    assert (await asking(home, retried)).sender == "eve"


async def test_a_stranger_without_a_session_gets_one(open_home: OpenHome) -> None:
    home = await open_home()
    knock = await home.knock("eve", "hello all", chat="group", is_private=False)
    await home.reopen(world=replace(a_world(), is_allowed=lambda _channel, _person: True))
    await retry(home, knock)

    assert [turn.request for turn in await home.turns("group", FRONT)] == ["hello all"]


async def test_no_one_is_asked_for_who_is_not_allowed_any_more(open_home: OpenHome) -> None:
    home = await open_home()
    await home.work_on("one")
    cut = await home.say("two")
    await home.stop()
    await home.reopen(world=a_world(revoked=["ann"]))

    assert await refused(home, cut) is Again.NOT_SERVED


async def test_where_it_is_unknown_in_which_chat_it_was_said_it_is_refused(home: Home) -> None:
    """As of strangers whose words were kept before they could be asked again."""
    inbound = home.inbound("hello", person="eve", channel=FRONT, chat="")
    (knock,) = await home.accept(Arrival(inbound=inbound))

    assert await refused(home, knock) is Again.NO_PLACE
