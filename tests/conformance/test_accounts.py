"""Another account on a channel: its numbers are its own, and those of the old one mean nothing."""

from dataclasses import replace
from typing import NoReturn

from koboshi.domain.ids import ChannelName
from koboshi.domain.inbox import EntryState
from koboshi.domain.outbox import Delivery, DeliveryState, Sent, Settle, after_send
from koboshi.domain.process import ProcessState
from koboshi.ports.channel import Receipt
from koboshi.ports.store import Arrival
from tests.harness.homes import WEB, Home, a_call

OLD, NEW = "111", "222"
TELEGRAM = ChannelName("telegram:main")


async def hear(
    home: Home, account: str, text: str, key: str, *, edits: str = "", cursor: str | None = None
) -> Receipt:
    """Store a message to one of our accounts."""
    inbound = replace(home.inbound(text, key=key), edits=edits)
    (receipt,) = await home.store.inbox.accept(
        WEB, [Arrival(inbound=inbound)], cursor=cursor, respond=_no_command, account=account
    )
    return receipt


def _no_command(*_: object) -> NoReturn:
    raise AssertionError("nobody commands here")


async def speak_as(home: Home, account: str) -> bool:
    """The next boot has this account. Returns whether that is a change."""
    await home.reopen(crash=True)
    return bool(await home.store.inbox.bind({WEB: account}))


async def settle(home: Home, delivery: Delivery, platform_id: str) -> None:
    change = after_send(delivery, Sent(platform_id=platform_id))
    await home.store.outbox.settle(delivery, home.worker.worker_id, change)


async def test_the_same_key_of_two_accounts_is_two_messages(home: Home) -> None:
    """Issue 12, A6."""
    assert not await speak_as(home, OLD)
    first = await hear(home, OLD, "hello", "7/10", cursor="100")
    assert await speak_as(home, NEW)
    second = await hear(home, NEW, "hello", "7/10")
    again = await hear(home, NEW, "hello", "7/10")

    assert not first.is_duplicate
    assert not second.is_duplicate
    assert (again.is_duplicate, again.entry_id) == (True, second.entry_id)
    newest = await home.store.views.entry_by_external_id("7/10")
    assert newest is not None
    assert newest.entry_id == second.entry_id


async def test_a_new_account_has_no_cursor_and_an_old_one_has_its_own_again(home: Home) -> None:
    """Issue 12, A6: who goes back to the first bot takes nothing twice."""
    inbox = home.store.inbox
    await inbox.bind({WEB: OLD})
    await hear(home, OLD, "hello", "1", cursor="100")
    await inbox.bind({WEB: NEW})
    assert await inbox.cursor(WEB, NEW) is None
    await hear(home, NEW, "hello", "1", cursor="5")
    await inbox.bind({WEB: OLD})

    assert await inbox.cursor(WEB, OLD) == "100"
    assert (await hear(home, OLD, "hello", "1")).is_duplicate


async def test_an_edit_concerns_a_message_to_the_same_account(home: Home) -> None:
    """Issue 12, A6."""
    await speak_as(home, OLD)
    await hear(home, OLD, "first", "1")
    await home.claim()
    waiting = await hear(home, OLD, "second", "2")
    await speak_as(home, NEW)
    await hear(home, NEW, "something else", "u9", edits="2")

    entry = await home.entry(waiting)
    assert (entry.state, entry.text) == (EntryState.WAITING, "second")


async def test_a_new_account_knows_no_message_of_the_old_one(home: Home) -> None:
    """Issue 12, A6: a delivery answers none, and a send of unknown outcome cannot be looked for,
    also when the new account has said something before it."""
    await speak_as(home, OLD)
    await hear(home, OLD, "hello", "10")
    await home.answer(await home.claim(), "one", "two", "three")
    await settle(home, await home.take_delivery(), "11")
    await home.take_delivery()
    assert await speak_as(home, NEW)
    unsure = await home.take_delivery()

    assert unsure.is_ambiguous
    assert unsure.anchor == ""
    near = await home.store.outbox.near(unsure)
    assert [each for each in near.before if each] == []
    await settle(home, unsure, "3")
    third = await home.take_delivery()
    near = await home.store.outbox.near(third)
    assert [each for each in near.before if each] == [], "it is older than the change"


async def test_what_a_new_account_says_itself_can_be_looked_for(home: Home) -> None:
    """Issue 12, A6: only what is from before the change is forgotten."""
    await speak_as(home, OLD)
    await hear(home, OLD, "hello", "10")
    await home.answer(await home.claim(), "one")
    await settle(home, await home.take_delivery(), "11")
    await speak_as(home, NEW)
    home.clock.move(10)
    await hear(home, NEW, "hello", "5")
    await home.answer(await home.claim(), "two", "three")
    await settle(home, await home.take_delivery(), "6")
    unsure = await home.take_delivery()

    near = await home.store.outbox.near(unsure)
    assert set(near.before) == {"5", "6"}


async def test_a_clock_that_was_set_back_brings_no_old_ids_back(home: Home) -> None:
    """Issue 12, A6: the change is behind everything that the old account said."""
    await speak_as(home, OLD)
    await hear(home, OLD, "hello", "10")
    await home.answer(await home.claim(), "one", "two")
    await settle(home, await home.take_delivery(), "11")
    await home.take_delivery()
    home.clock.wall_ms -= 3_600_000
    await speak_as(home, NEW)
    unsure = await home.take_delivery()

    near = await home.store.outbox.near(unsure)
    assert [each for each in (*near.before, *near.known) if each] == []


async def test_what_is_said_again_by_hand_answers_no_message_of_the_old_account(
    home: Home,
) -> None:
    """Issue 12, A6: the message that it was an answer to is in another chat."""
    await speak_as(home, OLD)
    asked = await hear(home, OLD, "hello", "10")
    claim = await home.claim()
    await home.store.turns.fail(claim, "the model is gone")
    lost = await home.take_delivery()
    assert lost.anchor == "10"
    refused = Settle(state=DeliveryState.REJECTED, reason="chat not found")
    await home.store.outbox.settle(lost, home.worker.worker_id, refused)
    await speak_as(home, NEW)
    home.clock.move(10)
    await home.store.outbox.retry(lost.delivery_id)
    again = await home.take_delivery()
    assert again.anchor == ""
    await settle(home, again, "3")

    await home.store.inbox.retry(asked.entry_id)
    claim = await home.claim()
    await home.answer(claim, "hello")
    (answer,) = [each for each in await home.deliver() if each.text == "hello"]
    assert answer.anchor == ""


async def test_a_refused_account_is_assigned_nothing(home: Home) -> None:
    """Issue 12, A6: what is from before accounts were known waits for one that connects."""
    await home.say("hello", key="1", cursor="100")
    inbox = home.store.inbox
    await inbox.bind({WEB: "mistyped"})
    await inbox.bind({WEB: OLD})
    assert await inbox.cursor(WEB, OLD) == "100"
    await inbox.connect(WEB, OLD)
    await inbox.bind({WEB: NEW})
    await inbox.connect(WEB, NEW)

    assert await inbox.cursor(WEB, OLD) == "100"
    assert await inbox.cursor(WEB, NEW) is None
    assert (await hear(home, OLD, "hello", "1")).is_duplicate
    assert not (await hear(home, NEW, "hello", "1")).is_duplicate


async def test_other_channels_keep_their_ids(home: Home) -> None:
    """Issue 12, A6."""
    inbox = home.store.inbox
    await inbox.bind({TELEGRAM: OLD})
    await home.say("hello", key="10", cursor="100")
    claim = await home.claim()
    await inbox.bind({TELEGRAM: NEW})
    await home.answer(claim, "one")

    assert (await home.take_delivery()).anchor == "10"
    assert await inbox.cursor(WEB) == "100"


async def test_what_the_old_account_said_in_passing_is_not_edited(home: Home) -> None:
    """Issue 12, A6: its number may be another message of the new one."""
    await speak_as(home, OLD)
    await hear(home, OLD, "hello", "10")
    claim = await home.claim()
    await home.store.turns.tell_progress(claim, 1, "still at it")
    await settle(home, await home.take_delivery(), "11")
    told = (await home.store.turns.progress(claim)).told
    assert told is not None
    assert told.platform_id == "11"
    await home.store.inbox.bind({WEB: NEW})

    told = (await home.store.turns.progress(claim)).told
    assert told is not None
    assert told.platform_id is None


async def test_a_report_about_a_closed_turn_answers_no_message_of_the_old_account(
    home: Home,
) -> None:
    """Issue 12, A6: the process outlives the change, and its end is told where people are now."""
    await speak_as(home, OLD)
    await hear(home, OLD, "hello", "10")
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call())
    await home.start(claim, call_id)
    process = await home.store.processes.begin(
        claim, call_id, command="make", workdir=".", is_foreground=False
    )
    await home.finish(claim, call_id)
    await home.answer(claim, "it runs")
    for delivery in await home.deliver():
        assert delivery.anchor == "10"
    assert await speak_as(home, NEW)
    home.clock.move(10)
    await home.store.processes.ended(
        process.process_id, ProcessState.EXITED, exit_code=0, reason="", ended_ms=1
    )

    (told,) = await home.deliver()
    assert told.anchor == ""
