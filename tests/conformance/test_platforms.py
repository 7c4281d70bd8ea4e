"""What platforms do to messages: they are edited, sent as albums, and chats move elsewhere."""

from dataclasses import replace

import pytest

from koboshi.domain.files import Attachment, OutFile, Parcel
from koboshi.domain.inbox import EntryState
from koboshi.domain.outbox import Delivery, Near, Postpone, Sent, Unsure, after_send, held
from koboshi.domain.transcript import Message, Result, ResultStatus
from koboshi.ports.channel import Inbound, Receipt
from koboshi.ports.store import Arrival
from tests.harness.fake_time import HOUR_MS
from tests.harness.homes import Home, a_call


async def take(home: Home, *inbound: Inbound) -> Receipt:
    """Store them in one transaction, as intake does. Returns the last receipt."""
    arrivals = [Arrival(inbound=each, ignored=each.ignored) for each in inbound]
    return (await home.accept(*arrivals))[-1]


async def edit(home: Home, key: str, text: str, by: str = "ann") -> Receipt:
    inbound = home.inbound(text, key=f"edit of {key}: {text}")
    return await take(home, replace(inbound, edits=key, sender=by))


async def texts(home: Home) -> list[str]:
    claim = await home.claim()
    steps = (await home.store.turns.load(claim)).steps
    return [step.body.text for step in steps if isinstance(step.body, Message)]


async def test_an_edit_takes_the_place_of_a_message_that_waits(home: Home) -> None:
    await home.say("first")
    claim = await home.claim()
    waiting = await home.say("secnd", key="k2")
    edited = await edit(home, "k2", "second")
    await home.reopen(crash=True)
    await home.say("third")
    claim = await home.resume(claim.turn_id)
    await home.answer(claim)

    assert (await home.entry(waiting)).state == EntryState.ATTACHED
    assert (await home.entry(edited)).reason == "edit"
    assert await texts(home) == ["second", "third"]


async def test_an_edit_that_does_not_name_us_any_more_still_changes_what_waits(home: Home) -> None:
    """In a group: "never mind" need not name the agent, which would act on the old words."""
    await home.say("first")
    claim = await home.claim()
    await home.say("delete it", key="k2")
    other = replace(home.inbound("never mind", key="e2"), is_addressed=False)
    foreign = await take(home, replace(other, external_id="e3", edits="never seen"))
    await take(home, replace(other, edits="k2"))
    await home.answer(claim)

    assert foreign.entry_id == 0, "words to others are not kept"
    assert await texts(home) == ["never mind"]


async def test_an_edit_of_what_was_heard_comes_too_late(home: Home) -> None:
    await home.say("count to three", key="k1")
    claim = await home.claim()
    await edit(home, "k1", "count to nine")

    (heard,) = (await home.store.turns.load(claim)).steps
    assert heard.body.text == "count to three"
    assert len(await home.turns()) == 1


async def test_no_one_edits_the_words_of_others(home: Home) -> None:
    await home.say("first")
    claim = await home.claim()
    await home.say("second", key="k2")
    await edit(home, "k2", "pay me", by="bob")
    await home.answer(claim)

    assert await texts(home) == ["second"]


async def test_an_edit_of_something_unknown_changes_nothing(home: Home) -> None:
    receipt = await edit(home, "never seen", "what?")

    assert receipt.state is EntryState.IGNORED
    assert (await home.store.views.status()).sessions == 0


def picture(home: Home, number: int, group: str = "album") -> Inbound:
    file = Attachment(reference=f"f{number}", path=f"received/{number}.jpg", kind="image/jpeg")
    inbound = home.inbound("", key=f"p{number}")
    return replace(inbound, words=replace(inbound.words, files=(file,), group=group))


async def test_an_album_is_one_turn(home: Home) -> None:
    await take(home, picture(home, 1), picture(home, 2), picture(home, 3))

    (turn,) = await home.turns()
    claim = await home.claim()
    steps = (await home.store.turns.load(claim)).steps
    messages = [step.body for step in steps if isinstance(step.body, Message)]
    paths = [file.path for message in messages for file in message.files]
    assert paths == ["received/1.jpg", "received/2.jpg", "received/3.jpg"]
    assert turn.turn_id == claim.turn_id


async def test_the_rest_of_an_album_joins_its_turn_at_the_next_step(home: Home) -> None:
    await take(home, picture(home, 1))
    claim = await home.claim()
    late = await take(home, picture(home, 2))
    other = await home.say("and something else")
    (call_id,) = await home.propose(claim, a_call())
    await home.start(claim, call_id)
    await home.finish(claim, call_id)

    assert (await home.entry(late)).turn_id == claim.turn_id
    assert (await home.entry(other)).state == EntryState.WAITING


async def test_an_album_after_an_interruption_still_opens_one_turn(home: Home) -> None:
    await home.say("first")
    claim = await home.claim()
    await take(home, picture(home, 1), picture(home, 2))
    await home.reopen(crash=True)
    claim = await home.resume(claim.turn_id)
    await home.answer(claim)

    later = await home.claim()
    assert len((await home.store.turns.load(later)).steps) == 2


async def test_a_chat_that_moves_takes_everything_owed_with_it(home: Home) -> None:
    await home.say("first")
    await home.answer(await home.claim(), "one", "two")
    moved = replace(home.inbound("", key="moved"), ignored="moved", moved_to="ann-2")
    await take(home, moved)
    await take(home, replace(moved, external_id="moved again"))
    sent = await home.deliver("ann-2")
    receipt = await home.say("and now?", chat="ann-2")

    assert [delivery.route.chat for delivery in sent] == ["ann-2", "ann-2"]
    assert (await home.entry(receipt)).session_id == sent[0].session_id


async def test_a_file_is_owed_with_the_result_of_its_call_and_once(home: Home) -> None:
    await home.say("send it")
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call())
    await home.start(claim, call_id)
    file = OutFile(path="files/1-report.pdf", name="report.pdf", size=12)
    result = Result(call_id=call_id, status=ResultStatus.OK, text="queued")
    parcel = Parcel(file=file, caption="the report")
    await home.store.turns.finish_call(claim, result, (), parcel)
    await home.reopen(crash=True)

    (sent,) = await home.deliver()
    assert (sent.file, sent.text) == (file, "the report")
    assert await home.deliver() == []


async def test_what_is_known_of_the_chat_around_a_send_of_unknown_outcome(home: Home) -> None:
    await home.say("first", key="10")
    await home.answer(await home.claim(), "one", "two", "three")
    worker_id = home.worker.worker_id
    for number in (11, 12):
        delivery = await home.take_delivery()
        change = after_send(delivery, Sent(platform_id=str(number)))
        await home.store.outbox.settle(delivery, worker_id, change)
    await home.take_delivery()
    await home.reopen(crash=True)
    delivery = await home.take_delivery()

    near = await home.store.outbox.near(delivery)
    assert near == Near(before=(delivery.anchor, "12", "11"), known=(), is_alone=True)
    assert delivery.is_ambiguous


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, 0, HOUR_MS])
async def test_no_clock_makes_a_later_message_an_earlier_one(home: Home, jump_ms: int) -> None:
    """Issue 12, A1 and A5: what is looked for is looked for behind the messages that were there
    before it was sent. A later one among them would hide it, and it would be sent twice."""
    for thread in ("1", "2"):
        await home.say("hello", thread=thread)
        await home.answer(await home.claim(), "answer", "more")
    await arrives(home, await home.take_delivery(thread="2"), "11")
    await home.take_delivery(thread="1")
    home.clock.wall_ms += jump_ms
    await arrives(home, await home.take_delivery(thread="2"), "13")
    home.clock.wall_ms -= 2 * jump_ms
    await home.reopen(crash=True)
    unknown = await home.take_delivery(thread="1")

    near = await home.store.outbox.near(unknown)
    assert near == Near(before=(unknown.anchor, "11"), known=("13",), is_alone=True)


@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_progress_line_that_may_be_there_is_not_taken_for_the_answer(
    home: Home, is_killed: bool
) -> None:
    """Issue 12, A1: found by the torture. The one unknown message in the chat was the progress
    line, the answer counted as delivered, and the person never saw it."""
    claim = await home.work_on()
    await home.store.turns.tell_progress(claim, 1, "Still working.")
    line = await home.take_delivery()
    assert line.is_passing
    if is_killed:
        claim = await home.resume(claim.turn_id)
    else:
        await home.store.outbox.settle(line, home.worker.worker_id, after_send(line, Unsure()))
    await home.answer(claim, "the answer")
    await home.take_delivery()
    await home.reopen(crash=True)
    answer = await home.take_delivery()

    assert answer.is_ambiguous
    assert not (await home.store.outbox.near(answer)).is_alone


async def test_a_second_send_of_unknown_outcome_in_the_chat_is_no_longer_alone(home: Home) -> None:
    for thread in ("1", "2"):
        await home.say("hello", thread=thread)
        await home.answer(await home.claim(), "answer")
    first = await home.take_delivery(thread="1")
    await home.take_delivery(thread="2")
    await home.reopen(crash=True)
    first = await home.take_delivery(thread="1")

    assert not (await home.store.outbox.near(first)).is_alone


async def test_what_is_held_holds_up_nothing_and_goes_out_labelled_when_told_to(home: Home) -> None:
    """S146: with `ambiguous = "hold"` a person decides."""
    await home.say("first")
    await home.answer(await home.claim(), "one")
    delivery = await home.take_delivery()
    change = held("it may have arrived")
    assert isinstance(change, Postpone)
    await home.store.outbox.settle(delivery, home.worker.worker_id, change)
    await home.say("second")
    await home.answer(await home.claim(), "two")
    assert [each.text for each in await home.deliver()] == ["two"]

    await home.store.outbox.retry(delivery.delivery_id)
    (late,) = await home.deliver()
    assert (late.text, late.may_be_duplicate) == ("one", True)


async def arrives(home: Home, delivery: Delivery, platform_id: str) -> None:
    change = after_send(delivery, Sent(platform_id=platform_id))
    await home.store.outbox.settle(delivery, home.worker.worker_id, change)


async def test_what_may_be_there_twice_is_not_taken_for_another(home: Home) -> None:
    """S146: a first copy whose id is unknown, of a delivery that arrived with a label since."""
    for thread in ("1", "2"):
        await home.say("hello", thread=thread)
        await home.answer(await home.claim(), "answer")
    twice = await home.take_delivery(thread="1")
    await home.store.outbox.label(twice, home.worker.worker_id)
    home.clock.move(10)
    await arrives(home, twice, "12")
    await home.take_delivery(thread="2")
    await home.reopen(crash=True)
    later = await home.take_delivery(thread="2")

    assert not (await home.store.outbox.near(later)).is_alone


async def test_in_a_crowd_of_later_messages_nothing_is_looked_for(home: Home) -> None:
    """S146: those that are not remembered would be taken for the one that is looked for."""
    for thread in ("1", "2"):
        await home.say("hello", thread=thread)
        parts = ["answer"] if thread == "1" else [f"part {number}" for number in range(60)]
        await home.answer(await home.claim(), *parts)
    await home.take_delivery(thread="1")
    home.clock.move(10)
    for number in range(60):
        await arrives(home, await home.take_delivery(thread="2"), str(100 + number))
    await home.reopen(crash=True)
    first = await home.take_delivery(thread="1")

    assert not (await home.store.outbox.near(first)).is_alone


async def test_the_numbers_of_a_chat_that_moved_mean_nothing_any_more(home: Home) -> None:
    """Neither what is answered nor what was there before can be named by them."""
    await home.say("first", key="500")
    await home.answer(await home.claim(), "one", "two")
    await arrives(home, await home.take_delivery(), "501")
    home.clock.move(10)
    moved = replace(home.inbound("", key="moved"), ignored="moved", moved_to="ann-2")
    await take(home, moved)
    home.clock.move(10)
    delivery = await home.take_delivery("ann-2")

    near = await home.store.outbox.near(delivery)
    assert delivery.anchor == ""
    assert (near.before, near.known) == (("",), ())


async def test_where_something_was_asked_is_kept_as_it_came(home: Home) -> None:
    """S153: it is not put together and taken apart again, whatever it is made of."""
    chat, thread = "-100:5/7@x", "9:1/2"
    await home.say("first", chat=chat, thread=thread)
    claim = await home.claim()
    await home.reopen(crash=True)
    await home.answer(await home.resume(claim.turn_id), "one")
    delivery = await home.take_delivery(chat, thread)

    assert (delivery.route.chat, delivery.route.thread) == (chat, thread)


async def test_what_is_answered_after_a_move_names_no_message_from_before(home: Home) -> None:
    await home.say("first", key="500")
    claim = await home.claim()
    await home.say("second", key="502")
    moved = replace(home.inbound("", key="moved"), ignored="moved", moved_to="ann-2")
    await take(home, moved)
    await home.answer(claim, "one")
    await home.answer(await home.claim(), "two")

    assert [each.anchor for each in await home.deliver("ann-2")] == ["", ""]
