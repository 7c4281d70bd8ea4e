"""Issue 14, point 3: held is a state of a delivery, and every view says so."""

import pytest

from koboshi.domain.outbox import DeliveryState, held
from koboshi.ports.views import DeliveryView, Page
from tests.harness.homes import Home

REASON = "it may have arrived"


async def hold(home: Home, text: str = "one") -> DeliveryView:
    """An answer of which it is unknown whether it arrived, and whose owner wants to decide."""
    claim = await home.work_on()
    await home.answer(claim, text)
    delivery = await home.take_delivery()
    await home.store.outbox.settle(delivery, home.worker.worker_id, held(REASON))
    (row,) = await home.deliveries(claim.turn_id)
    return row


async def view(home: Home, row: DeliveryView) -> DeliveryView:
    found = await home.store.views.delivery(row.delivery_id)
    assert found is not None
    return found


async def lines_of(home: Home, row: DeliveryView) -> list[tuple[str, str | None, str | None]]:
    assert row.turn_id is not None
    lines = await home.lines(row.turn_id)
    return [(line.event, line.before, line.after) for line in lines if line.subject == "delivery"]


async def test_a_held_delivery_says_so_wherever_it_is_seen(home: Home) -> None:
    """Issue 14, point 3."""
    row = await hold(home)

    assert (row.state, row.reason, row.due_ms) == (DeliveryState.HELD, REASON, None)
    page = Page(limit=10, before=1_000, is_open=True)
    assert [each.state for each in await home.store.views.deliveries(page)] == ["held"]
    status = await home.store.views.status()
    assert (status.outbox_unsettled, status.outbox_held) == (1, 1)
    tally = await home.store.views.tally(home.worker.worker_id, None)
    assert (tally.held, tally.ambiguous) == (1, 1)


async def test_the_journal_keeps_its_words_for_what_is_held(home: Home) -> None:
    """Issue 14, point 3: it was put off; that it is let go is no line, its next attempt is."""
    row = await hold(home)
    assert await lines_of(home, row) == [("postponed", "sending", "held")]

    assert await home.store.outbox.release(row.delivery_id) == 1
    assert (await view(home, row)).state == DeliveryState.OWED
    assert await lines_of(home, row) == [("postponed", "sending", "held")]

    (late,) = await home.deliver()
    assert late.may_be_duplicate
    assert (await lines_of(home, row))[1:] == [("delivered", "sending", "delivered")]


@pytest.mark.parametrize("how", ["release", "release all", "retry"])
async def test_what_is_held_is_owed_again_when_the_operator_says_so(home: Home, how: str) -> None:
    """Issue 14, point 3."""
    row = await hold(home)
    match how:
        case "release":
            assert await home.store.outbox.release(row.delivery_id) == 1
        case "release all":
            assert await home.store.outbox.release(None) == 1
        case _:
            assert await home.store.outbox.retry(row.delivery_id) == row.delivery_id

    seen = await view(home, row)
    assert (seen.state, seen.reason, seen.due_ms) == (DeliveryState.OWED, None, None)
    assert [each.text for each in await home.deliver()] == ["one"]


async def test_what_is_held_can_be_dropped_and_ends_its_turn(home: Home) -> None:
    """Issue 14, point 3."""
    row = await hold(home)

    assert await home.store.outbox.drop(row.delivery_id)
    assert (await view(home, row)).state == DeliveryState.ABANDONED
    assert (await lines_of(home, row))[1:] == [("abandoned", "held", "abandoned")]
    assert row.turn_id is not None
    assert (await home.explain(row.turn_id)).turn.state == "done"
