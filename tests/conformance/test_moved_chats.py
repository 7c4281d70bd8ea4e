"""A chat that moves to where a session is already: owed deliveries go there, and nothing is held
up by what was said there before."""

from dataclasses import replace

from koboshi.domain.outage import ModelFailure
from koboshi.domain.outbox import (
    MOVES_MAX,
    SAID_THERE,
    Delivery,
    DeliveryState,
    Moved,
    Settle,
    after_send,
)
from koboshi.domain.turn import Claim
from koboshi.ports.store import Arrival
from tests.harness.homes import Home

MINUTE_MS = 60_000


async def two_chats(home: Home) -> Claim:
    """The person has written in the new chat before the old one was known to have moved."""
    claim = await home.work_on("one", chat="ann")
    await home.work_on("two", chat="ann2")
    return claim


async def move_away(home: Home, delivery: Delivery) -> None:
    change = after_send(delivery, Moved(chat="ann2"))
    await home.store.outbox.settle(delivery, home.worker.worker_id, change)


async def fail_long(home: Home, claim: Claim) -> None:
    """So long that the person is to know."""
    failure = ModelFailure(reason="the provider could not be reached", spent_ms=MINUTE_MS)
    for _ in range(2):
        await home.store.turns.retry_model(claim, failure)


async def test_what_the_other_chat_was_told_already_does_not_hold_up_the_rest(home: Home) -> None:
    """Red before: it could not move, and was sent to the old address for ever, and so was all that
    was owed behind it."""
    claim = await two_chats(home)
    await home.store.workers.begin_drain(home.worker.worker_id)
    (told,) = await home.deliver("ann2")
    await home.answer(claim, "answer one")

    await move_away(home, await home.take_delivery("ann"))

    assert [row.text for row in await home.deliver("ann2")] == ["answer one"]
    ends = [(row["state"], row["reason"]) for row in home.rows().of("outbox", text=told.text)]
    assert sorted(ends) == [("abandoned", SAID_THERE), ("delivered", None)]
    assert (await home.view(claim.turn_id)).state == "done"


async def test_an_outage_is_told_once_also_when_the_chat_moves_in_between(home: Home) -> None:
    claim = await two_chats(home)
    await fail_long(home, claim)
    await move_away(home, await home.take_delivery("ann"))
    (told,) = await home.deliver("ann2")

    await fail_long(home, claim)

    assert "does not answer" in told.text
    assert len(home.rows().of("outbox", turn_id=claim.turn_id)) == 1


async def test_a_turn_is_done_when_what_moved_has_arrived_and_not_before(home: Home) -> None:
    """Its first part is on its way to the old chat when the platform tells of the new one."""
    claim = await two_chats(home)
    await home.answer(claim, "1", "2")
    first = await home.take_delivery("ann")
    moved = replace(home.inbound("", chat="ann"), moved_to="ann2")
    await home.accept(Arrival(inbound=moved, ignored="moved"))

    arrived = Settle(state=DeliveryState.DELIVERED, platform_id="p1")
    await home.store.outbox.settle(first, home.worker.worker_id, arrived)

    assert (await home.view(claim.turn_id)).state == "answered"
    assert [row.text for row in await home.deliver("ann2")] == ["2"]
    assert (await home.view(claim.turn_id)).state == "done"


async def test_what_was_tried_often_follows_its_chat_as_well(home: Home) -> None:
    """Red before: after so many attempts it never did, whatever they had failed for."""
    claim = await home.work_on("one", chat="ann")
    await home.answer(claim, "answer one")
    delivery = replace(await home.take_delivery("ann"), attempts=MOVES_MAX)

    await move_away(home, delivery)

    home.clock.move(15 * MINUTE_MS)
    assert [row.text for row in await home.deliver("ann2")] == ["answer one"]
