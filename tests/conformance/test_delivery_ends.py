"""How deliveries end that did not arrive, and who is told. Issue 12, A1, B14 and B15."""

import pytest

from koboshi.domain import phrases
from koboshi.domain.command import CommandName
from koboshi.domain.ids import DeliveryId
from koboshi.domain.outbox import (
    STRIKES_MAX,
    Delivery,
    DeliveryState,
    GivenUp,
    Postpone,
    Settle,
    Unsure,
    after_send,
    held,
)
from tests.harness.fake_time import DAY_MS, HOUR_MS
from tests.harness.homes import WEB, Home

LOST = Unsure(reason="reset")
ARRIVED = Settle(state=DeliveryState.DELIVERED, platform_id="p")


async def take(
    home: Home, chat: str = "ann", *, is_up: bool = True
) -> Delivery | GivenUp | int | None:
    session_id = await home.session_id(chat)
    return await home.store.outbox.claim(session_id, home.worker.worker_id, is_up=is_up)


async def settle(home: Home, delivery: Delivery, change: Postpone | Settle) -> None:
    await home.store.outbox.settle(delivery, home.worker.worker_id, change)


async def is_lost(home: Home, chat: str = "ann") -> None:
    """One try whose outcome is unknown."""
    delivery = await take(home, chat)
    assert isinstance(delivery, Delivery)
    change = after_send(delivery, LOST)
    assert isinstance(change, Postpone)
    await settle(home, delivery, change)
    home.clock.move(change.wait_ms)


async def another_arrives(home: Home) -> None:
    await home.answer(await home.work_on(chat="bob"))
    await home.deliver("bob")


async def test_strikes_are_counted_only_while_others_arrive(home: Home) -> None:
    await home.answer(await home.work_on())
    for _ in range(3):
        await is_lost(home)
    quiet = await take(home)
    assert isinstance(quiet, Delivery)
    assert (quiet.unsure, quiet.strikes) == (3, 0)
    await settle(home, quiet, Postpone(wait_ms=0, is_ambiguous=True, reason="reset"))
    for _ in range(2):
        await another_arrives(home)
        await is_lost(home)

    struck = await take(home)
    assert isinstance(struck, Delivery)
    assert struck.strikes == 2


async def test_a_poisoned_delivery_ends_at_once_and_the_next_one_follows(home: Home) -> None:
    await home.answer(await home.work_on(), "poison", "behind it")
    await is_lost(home)
    for _ in range(STRIKES_MAX):
        await another_arrives(home)
        delivery = await take(home)
        assert isinstance(delivery, Delivery)
        change = after_send(delivery, LOST)
        assert isinstance(change, Postpone)
        await settle(home, delivery, change)
        if delivery.strikes < STRIKES_MAX - 1:
            home.clock.move(change.wait_ms)

    given_up = await take(home)
    assert isinstance(given_up, GivenUp)
    assert given_up.is_told
    assert [each.text for each in await home.deliver()] == [
        "behind it",
        phrases.undelivered([given_up.delivery_id]),
    ]


async def expire(home: Home, chat: str = "ann") -> DeliveryId:
    """What is next in the chat is tried, and too old at its next try."""
    delivery = await take(home, chat)
    assert isinstance(delivery, Delivery)
    await settle(home, delivery, Postpone(wait_ms=0, is_ambiguous=False, reason="busy"))
    home.clock.move(DAY_MS + 1)
    given_up = await take(home, chat)
    assert isinstance(given_up, GivenUp)
    return given_up.delivery_id


async def test_one_notice_tells_of_all_that_a_chat_has_lost(home: Home) -> None:
    claim = await home.work_on()
    await home.answer(claim, "1", "2")
    lost = [await expire(home), await expire(home)]

    (notice,) = await home.deliver()
    assert notice.text == phrases.undelivered(lost)
    assert (await home.view(claim.turn_id)).state == "done"


async def test_a_notice_that_was_sent_is_followed_by_another(home: Home) -> None:
    await home.answer(await home.work_on())
    first = await expire(home)
    (one,) = await home.deliver()
    await home.answer(await home.work_on())
    second = await expire(home)
    (two,) = await home.deliver()

    assert (one.text, two.text) == (phrases.undelivered([first]), phrases.undelivered([second]))


async def test_no_notice_is_sent_of_a_lost_notice(home: Home) -> None:
    await home.answer(await home.work_on())
    await expire(home)
    notice = await take(home)
    assert isinstance(notice, Delivery)
    await settle(home, notice, Postpone(wait_ms=0, is_ambiguous=False, reason="busy"))
    home.clock.move(8 * DAY_MS)

    given_up = await take(home)
    assert isinstance(given_up, GivenUp)
    assert not given_up.is_told
    assert await take(home) is None


async def test_a_notice_and_an_unknown_outcome_wait_for_their_channel(home: Home) -> None:
    await home.answer(await home.work_on())
    await expire(home)
    assert await take(home, is_up=False) is None
    assert isinstance(await take(home), Delivery)
    await home.answer(await home.work_on(chat="bob"))
    await is_lost(home, "bob")
    assert await take(home, "bob", is_up=False) is None
    (due,) = [
        each for each in await home.store.outbox.due(DeliveryId(0)) if each.route.chat == "bob"
    ]
    assert (due.due_in_ms(is_up=False), due.due_in_ms(is_up=True)) == (None, 0)


async def test_a_reply_to_a_command_does_not_wait_for_an_unknown_outcome(home: Home) -> None:
    await home.answer(await home.work_on())
    await is_lost(home)
    await home.command(CommandName.HELP)

    (due,) = await home.store.outbox.due(DeliveryId(0))
    assert due.due_in_ms(is_up=False) == 0
    reply = await take(home, is_up=False)
    assert isinstance(reply, Delivery)
    assert reply.cause.startswith("command:")
    await settle(home, reply, ARRIVED)
    assert await take(home, is_up=False) is None


async def test_a_channel_that_is_back_hastens_what_was_certainly_not_sent(home: Home) -> None:
    """B14: and nothing else."""
    later = Postpone(wait_ms=HOUR_MS, is_ambiguous=False, reason="not reached")
    quiet = after_send_wait(HOUR_MS)
    unsure = Postpone(wait_ms=HOUR_MS, is_ambiguous=True, is_unsure=True, reason="reset")
    changes = {"ann": later, "bob": quiet, "cat": unsure, "dan": held("it may have arrived")}
    for chat, change in changes.items():
        await home.answer(await home.work_on(chat=chat))
        await settle(home, await home.take_delivery(chat), change)

    await home.store.outbox.hasten(WEB)
    assert isinstance(await take(home, "ann"), Delivery)
    assert await take(home, "bob") == HOUR_MS
    assert await take(home, "cat") == HOUR_MS
    assert await take(home, "dan") is None


def after_send_wait(wait_ms: int) -> Postpone:
    """What comes of a platform that wants quiet."""
    return Postpone(wait_ms=wait_ms, is_ambiguous=False, is_chat_wide=True, reason="429")


@pytest.mark.parametrize("name", [CommandName.STOP, CommandName.NEW])
async def test_a_stop_ends_the_answer_that_goes_out_and_a_new_conversation_does_not(
    home: Home, name: CommandName
) -> None:
    """B15: the part that is being sent is settled by what the platform says."""
    claim = await home.work_on()
    await home.answer(claim, "1", "2", "3")
    first = await home.take_delivery()
    await home.command(name)
    await settle(home, first, ARRIVED)

    left = [row.state for row in await home.deliveries(claim.turn_id)]
    if name is CommandName.NEW:
        assert left == ["delivered", "owed", "owed"]
        return
    assert left == ["delivered", "abandoned", "abandoned"]
    assert (await home.view(claim.turn_id)).state == "done"
    (reply,) = await home.deliver()
    assert reply.cause.startswith("command:")


async def test_a_stop_leaves_what_may_have_arrived_and_its_reply_overtakes_that(
    home: Home,
) -> None:
    """B15."""
    claim = await home.work_on()
    await home.answer(claim, "1", "2")
    delivery = await home.take_delivery()
    await settle(home, delivery, Postpone(wait_ms=HOUR_MS, is_ambiguous=True, reason="reset"))
    await home.command(CommandName.STOP)

    assert (await home.view(claim.turn_id)).state == "answered"
    reply = await home.take_delivery()
    assert reply.cause.startswith("command:")
