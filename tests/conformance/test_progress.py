"""What is said while a turn works, in the store."""

from collections.abc import Awaitable, Callable

import pytest

from koboshi.domain.outbox import DeliveryState
from koboshi.domain.progress import Told
from koboshi.domain.turn import Claim
from koboshi.ports.views import DeliveryView
from tests.harness.fake_time import SECOND_MS
from tests.harness.homes import Home, a_call

Leave = Callable[[Home, Claim], Awaitable[object]]

EXITS: dict[str, Leave] = {
    "answered": lambda home, claim: home.answer(claim, "done"),
    "failed": lambda home, claim: home.store.turns.fail(claim, "broken"),
    "postponed": lambda home, claim: home.store.turns.postpone(claim, 1_000, "busy"),
    "released": lambda home, claim: home.store.turns.release(claim),
    "stopped": lambda home, _: home.stop(),
    "asked": lambda home, claim: home.ask(claim),
}


@pytest.mark.parametrize("exit_name", EXITS)
async def test_whatever_ends_the_work_abandons_what_was_not_sent(
    home: Home, exit_name: str
) -> None:
    """S87, S100, S101: in the same transaction, so nothing stale is said after it."""
    claim = await home.work_on()
    await home.store.turns.tell_progress(claim, 1, "Still working.")

    await EXITS[exit_name](home, claim)

    (notice,) = await _notices(home, claim)
    assert (notice.state, notice.reason) == (DeliveryState.ABANDONED, "the work is over")


async def test_one_that_is_on_its_way_stays_before_the_answer(home: Home) -> None:
    """S100: no one can call it back, and it does not come after the answer."""
    claim = await home.work_on()
    await home.store.turns.tell_progress(claim, 1, "Still working.")
    await home.take_delivery()

    await home.answer(claim, "done")

    notice, answer = await home.deliveries(claim.turn_id)
    assert (notice.state, answer.state) == (DeliveryState.SENDING, DeliveryState.OWED)


@pytest.mark.parametrize("is_sending", [False, True])
async def test_what_a_dead_gateway_wanted_to_say_is_not_said_and_still_counts(
    home: Home, is_sending: bool
) -> None:
    """S99: the next life says nothing again within the same interval."""
    claim = await home.work_on()
    await home.store.turns.tell_progress(claim, 1, "Still working.")
    at_ms = home.clock.now_ms()
    if is_sending:
        await home.take_delivery()

    again = await home.resume(claim.turn_id)

    (notice,) = await _notices(home, claim)
    assert notice.state == DeliveryState.ABANDONED
    facts = await home.store.turns.progress(again)
    assert facts.told == Told(ordinal=1, at_ms=at_ms, is_settled=True, platform_id=None)


async def test_a_number_is_used_once(home: Home) -> None:
    """S99."""
    claim = await home.work_on()
    for words in ("Still working.", "Still working, again."):
        await home.store.turns.tell_progress(claim, 1, words)

    (notice,) = await _notices(home, claim)
    assert notice.text == "Still working."


async def test_the_newest_is_found_among_many_and_of_this_turn_alone(home: Home) -> None:
    claim = await home.work_on()
    for ordinal in range(1, 12):
        await home.store.turns.tell_progress(claim, ordinal, "Still working.")
        await home.deliver()

    told = (await home.store.turns.progress(claim)).told
    assert told is not None
    assert (told.ordinal, told.is_settled) == (11, True)
    await home.answer(claim, "done")
    assert (await home.store.turns.progress(await home.work_on("two"))).told is None


async def test_what_is_under_way_is_what_was_started_and_has_no_result(home: Home) -> None:
    claim = await home.work_on()
    first, second, _ = await home.propose(claim, a_call("a"), a_call("b"), a_call("c"))
    await home.start(claim, first, second)
    await home.finish(claim, first)

    facts = await home.store.turns.progress(claim)

    assert [record.call.call_id for record in facts.under_way] == [second]


async def test_the_time_is_that_of_the_turn_and_runs_anew_after_a_question(home: Home) -> None:
    """S103: the time that the person took is not counted, nor does a restart reset it."""
    claim = await home.work_on()
    opened_ms = home.clock.now_ms()
    home.clock.move(60 * SECOND_MS)
    claim = await home.resume(claim.turn_id)
    assert (await home.store.turns.progress(claim)).since_ms == opened_ms

    await home.ask(claim)
    home.clock.move(600 * SECOND_MS)
    await home.say("this one")
    answered_ms = home.clock.now_ms()
    claim = await home.claim()
    home.clock.move(60 * SECOND_MS)
    await home.step(claim)

    assert (await home.store.turns.progress(claim)).since_ms == answered_ms


async def _notices(home: Home, claim: Claim) -> list[DeliveryView]:
    found = await home.deliveries(claim.turn_id)
    return [each for each in found if each.cause.startswith("progress:")]
