"""Deliveries are sent in order, by one worker at a time, and settled once."""

import pytest
from anyio import create_task_group

from koboshi.domain.ids import DeliveryId
from koboshi.domain.outbox import (
    Delivery,
    DeliveryChange,
    DeliveryState,
    GivenUp,
    Moved,
    Postpone,
    Reroute,
    Settle,
    after_send,
    held,
)
from koboshi.domain.route import Route
from koboshi.ports.wakeups import OUTBOX
from tests.harness.fake_time import DAY_MS, SECOND_MS
from tests.harness.homes import WEB, Home

ALL = DeliveryId(0)


def arrived(delivery: Delivery) -> Settle:
    return Settle(state=DeliveryState.DELIVERED, platform_id=f"p{delivery.delivery_id}")


async def settle(home: Home, delivery: Delivery, change: DeliveryChange) -> None:
    await home.store.outbox.settle(delivery, home.worker.worker_id, change)


async def take(home: Home, chat: str = "ann") -> Delivery | GivenUp | int | None:
    session_id = await home.session_id(chat)
    return await home.store.outbox.claim(session_id, home.worker.worker_id)


# ── in order ────────────────────────────────────────────────────────────────────────────────────


async def test_nothing_is_owed_before_an_answer(home: Home) -> None:
    await home.work_on()

    assert await home.store.outbox.due(ALL) == ()
    assert await take(home) is None


async def test_parts_and_answers_go_out_in_order(home: Home) -> None:
    """S150: first in, first out within a session."""
    await home.answer(await home.work_on("one"), "1a", "1b")
    await home.answer(await home.work_on("two"), "2a")
    await home.reopen(crash=True)

    deliveries = await home.deliver()
    assert [delivery.text for delivery in deliveries] == ["1a", "1b", "2a"]
    assert [(delivery.part, delivery.parts) for delivery in deliveries] == [(1, 2), (2, 2), (1, 1)]
    assert deliveries[0].route == Route(channel=WEB, chat="ann")


async def test_one_delivery_of_a_session_is_under_way_at_a_time(home: Home) -> None:
    await home.answer(await home.work_on(), "1", "2")
    first = await take(home)
    assert isinstance(first, Delivery)

    assert await take(home) is None
    await settle(home, first, arrived(first))
    second = await take(home)
    assert isinstance(second, Delivery)
    assert second.text == "2"


async def test_ten_senders_at_once_take_a_delivery_once(home: Home) -> None:
    """S160, S149."""
    await home.answer(await home.work_on())
    taken: list[Delivery | GivenUp | int | None] = []

    async def try_it() -> None:
        taken.append(await take(home))

    async with create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(try_it)

    assert sum(delivery is not None for delivery in taken) == 1


async def test_sessions_do_not_wait_for_each_other(home: Home) -> None:
    await home.answer(await home.work_on(chat="ann"))
    await home.answer(await home.work_on(chat="bob"))
    await home.take_delivery("ann")

    assert (await home.take_delivery("bob")).route.chat == "bob"


async def test_sessions_to_which_something_is_owed_are_listed(home: Home) -> None:
    await home.answer(await home.work_on(chat="ann"), "1", "2")
    await home.answer(await home.work_on(chat="bob"))

    due = await home.store.outbox.due(ALL)
    assert sorted(each.route.chat for each in due) == ["ann", "bob"]
    newest = max(each.delivery_id for each in due)
    assert await home.store.outbox.due(newest) == ()
    await home.answer(await home.work_on(chat="ann"))
    (later,) = await home.store.outbox.due(newest)
    assert later.delivery_id > newest
    assert later.session_id == await home.session_id("ann")


async def test_what_is_settled_is_not_listed(home: Home) -> None:
    await home.answer(await home.work_on())
    await home.deliver()

    assert await home.store.outbox.due(ALL) == ()


async def test_what_a_dead_worker_was_sending_is_listed(home: Home) -> None:
    await home.answer(await home.work_on())
    await home.take_delivery()
    await home.reopen(crash=True)

    assert len(await home.store.outbox.due(ALL)) == 1


# ── what became of a send ───────────────────────────────────────────────────────────────────────


async def test_the_last_delivery_and_the_end_of_the_turn_are_one_transaction(home: Home) -> None:
    """S2, S45: delivered and done, or neither."""
    claim = await home.work_on()
    await home.answer(claim, "1", "2")
    first = await home.take_delivery()
    await settle(home, first, arrived(first))
    assert (await home.view(claim.turn_id)).state == "answered"
    second = await home.take_delivery()
    await settle(home, second, arrived(second))
    await home.reopen(crash=True)

    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.event, turn.closed_ms) == ("done", "settled", home.clock.now_ms())
    rows = await home.deliveries(claim.turn_id)
    assert [(row.state, row.platform_id, row.attempts) for row in rows] == [
        ("delivered", "p1", 1),
        ("delivered", "p2", 1),
    ]


async def test_a_turn_is_over_when_its_words_cannot_be_delivered(home: Home) -> None:
    """S148."""
    claim = await home.work_on()
    await home.answer(claim)
    refused = Settle(state=DeliveryState.REJECTED, reason="blocked by the person")
    await settle(home, await home.take_delivery(), refused)

    assert (await home.view(claim.turn_id)).state == "done"
    (row,) = await home.deliveries(claim.turn_id)
    assert (row.state, row.reason) == ("rejected", "blocked by the person")


async def test_a_delivery_that_was_never_taken_goes_out_plainly_after_a_crash(home: Home) -> None:
    """S145, S146."""
    await home.answer(await home.work_on(), "forty-two")
    await home.reopen(crash=True)

    delivery = await home.take_delivery()
    assert (delivery.is_ambiguous, delivery.may_be_duplicate, delivery.attempts) == (
        False,
        False,
        1,
    )


async def test_a_delivery_that_a_dead_worker_was_sending_is_ambiguous(home: Home) -> None:
    """S146: it may have arrived; that is known, and stays known."""
    await home.answer(await home.work_on(), "forty-two")
    first = await home.take_delivery()
    await home.reopen(crash=True)
    second = await home.take_delivery()
    await home.reopen(crash=True)
    third = await home.take_delivery()

    assert [delivery.is_ambiguous for delivery in (first, second, third)] == [False, True, True]
    assert [delivery.attempts for delivery in (first, second, third)] == [1, 2, 3]
    assert first.delivery_id == third.delivery_id


async def test_a_delivery_that_arrived_is_never_sent_again(home: Home) -> None:
    """S146, S149."""
    await home.answer(await home.work_on())
    await home.deliver()
    for _ in range(3):
        await home.reopen(crash=True)
        assert await take(home) is None


async def test_a_send_of_unknown_outcome_stays_ambiguous_when_it_is_put_off(home: Home) -> None:
    await home.answer(await home.work_on())
    unsure = Postpone(wait_ms=0, is_ambiguous=True, reason="timeout")
    await settle(home, await home.take_delivery(), unsure)

    again = await home.take_delivery()
    assert again.is_ambiguous
    assert again.attempts == 2


async def test_a_send_that_provably_failed_is_repeated_plainly(home: Home) -> None:
    await home.answer(await home.work_on())
    later = Postpone(wait_ms=0, is_ambiguous=False, reason="connection refused")
    await settle(home, await home.take_delivery(), later)

    assert not (await home.take_delivery()).is_ambiguous


async def test_the_label_is_durable_before_the_words_go_out_again(home: Home) -> None:
    """S146: the one who sends it next says that it may be a duplicate."""
    await home.answer(await home.work_on())
    await home.take_delivery()
    await home.reopen(crash=True)
    delivery = await home.take_delivery()
    await home.store.outbox.label(delivery, home.worker.worker_id)
    await home.reopen(crash=True)

    assert (await home.take_delivery()).may_be_duplicate


async def test_a_delivery_that_is_put_off_is_not_due_before_its_time(home: Home) -> None:
    await home.answer(await home.work_on(), "1", "2")
    home.wakeups.hints.clear()
    later = Postpone(wait_ms=30 * SECOND_MS, is_ambiguous=False, reason="slow down")
    await settle(home, await home.take_delivery(), later)

    assert OUTBOX in home.wakeups.hints
    assert await take(home) == 30 * SECOND_MS
    home.clock.move(30 * SECOND_MS - 1)
    assert await take(home) == 1, "the other words of the chat wait with it"
    home.clock.move(1)
    assert (await home.take_delivery()).text == "1"


async def test_a_delivery_shows_when_it_is_tried_next(home: Home) -> None:
    """Issue 12, C18: who waits for the rest of a gateway follows its own times. The next attempt
    knows how long the pause was."""
    claim = await home.work_on()
    await home.answer(claim)
    delivery = await home.take_delivery()
    assert (delivery.waited_ms, (await home.deliveries(claim.turn_id))[0].due_ms) == (0, None)
    later = Postpone(wait_ms=30 * SECOND_MS, is_ambiguous=False, reason="slow down")
    await settle(home, delivery, later)

    (row,) = await home.deliveries(claim.turn_id)
    assert row.due_ms == home.clock.now_ms() + 30 * SECOND_MS
    home.clock.move(30 * SECOND_MS)
    delivery = await home.take_delivery()
    assert delivery.waited_ms == 30 * SECOND_MS
    await settle(home, delivery, arrived(delivery))
    (row,) = await home.deliveries(claim.turn_id)
    assert row.due_ms is None


async def test_a_delivery_that_is_held_waits_for_no_time(home: Home) -> None:
    claim = await home.work_on()
    await home.answer(claim)
    await settle(home, await home.take_delivery(), held("it may have arrived"))

    (row,) = await home.deliveries(claim.turn_id)
    assert (row.state, row.due_ms) == ("held", None)


async def test_a_restart_does_not_shorten_a_pause_that_the_platform_asked_for(home: Home) -> None:
    await home.answer(await home.work_on())
    later = Postpone(wait_ms=30 * SECOND_MS, is_ambiguous=False, reason="slow down")
    await settle(home, await home.take_delivery(), later)
    await home.reopen(crash=True)

    assert await take(home) == 30 * SECOND_MS


# ── a chat that moves ───────────────────────────────────────────────────────────────────────────


async def test_a_chat_that_moves_takes_its_session_and_what_is_owed_along(home: Home) -> None:
    claim = await home.work_on("one", chat="ann")
    await home.answer(claim, "1", "2")
    await settle(home, await home.take_delivery(), Reroute(chat="ann2"))
    await home.reopen(crash=True)

    assert await home.store.sessions.find(Route(channel=WEB, chat="ann")) is None
    assert await home.session_id("ann2") == claim.session_id
    deliveries = await home.deliver("ann2")
    assert [(row.text, row.route.chat, row.is_ambiguous) for row in deliveries] == [
        ("1", "ann2", False),
        ("2", "ann2", False),
    ]
    assert (await home.view(claim.turn_id)).state == "done"


async def test_a_chat_that_moves_to_where_a_person_has_written_already_is_answered_there(
    home: Home,
) -> None:
    """S145, S148: the new chat has its own session by now. Asking the old address again and again
    would never end."""
    claim = await home.work_on("one", chat="ann")
    await home.answer(claim, "answer one")
    await home.answer(await home.work_on("two", chat="ann2"), "answer two")
    for _ in range(5):
        delivery = await take(home, "ann")
        if not isinstance(delivery, Delivery):
            break
        assert delivery.route.chat == "ann"
        moved = after_send(delivery, Moved(chat="ann2"))
        await settle(home, delivery, moved)
    else:
        raise AssertionError("it is sent to the old address for ever")

    assert await home.store.outbox.due(ALL) != ()
    said = await home.deliver("ann2")
    assert [(row.text, row.route.chat) for row in said] == [
        ("answer one", "ann2"),
        ("answer two", "ann2"),
    ]
    assert (await home.view(claim.turn_id)).state == "done"
    (row,) = await home.deliveries(claim.turn_id)
    assert row.state == "delivered"


# ── anchors ─────────────────────────────────────────────────────────────────────────────────────


async def test_an_answer_is_anchored_to_the_words_it_answers(home: Home) -> None:
    """S95, S151."""
    await home.answer(await home.work_on("one", key="first"))
    await home.answer(await home.work_on("two", key="second"))
    await home.reopen(crash=True)

    assert [delivery.anchor for delivery in await home.deliver()] == ["first", "second"]


@pytest.mark.parametrize("ending", ["failed", "given up", "asked"])
async def test_everything_that_is_said_about_a_turn_has_its_anchor(home: Home, ending: str) -> None:
    claim = await home.work_on("one", key="first")
    match ending:
        case "failed":
            await home.store.turns.fail(claim, "it broke")
        case "given up":
            claim = await home.resume(claim.turn_id)
            claim = await home.resume(claim.turn_id)
            await home.die_and_recover(claim.turn_id)
        case _:
            home.clock.move(DAY_MS)
            await home.die_and_recover(claim.turn_id)

    (delivery,) = await home.deliver()
    assert delivery.anchor == "first"
