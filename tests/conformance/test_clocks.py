"""Issue 12, A5: no jump of the clock on the wall expires anything, or delays it beyond its wait."""

import pytest

from koboshi.domain.browser import LIFE_MS
from koboshi.domain.ids import DeliveryId
from koboshi.domain.outbox import Delivery, GivenUp, Postpone, held
from koboshi.ports.wakeups import OUTBOX_SOONER
from tests.harness.fake_time import DAY_MS, HOUR_MS, SECOND_MS
from tests.harness.homes import Home

YEAR_MS = 365 * DAY_MS
JUMPS = [-YEAR_MS, -DAY_MS, DAY_MS, YEAR_MS]
SLOW_DOWN = Postpone(wait_ms=30 * SECOND_MS, is_ambiguous=False, reason="slow down")
QUIET = Postpone(wait_ms=30 * SECOND_MS, is_ambiguous=False, reason="slow down", is_chat_wide=True)

jumps = pytest.mark.parametrize("jump_ms", JUMPS)
waits = pytest.mark.parametrize("wait", [SLOW_DOWN, QUIET], ids=["row", "chat"])


def jump(home: Home, ms: int) -> None:
    """Only the clock on the wall is set."""
    home.clock.wall_ms += ms


async def owe(home: Home) -> Delivery:
    await home.answer(await home.work_on())
    return await home.take_delivery()


async def settle(home: Home, delivery: Delivery, change: Postpone) -> None:
    await home.store.outbox.settle(delivery, home.worker.worker_id, change)


async def take(home: Home) -> Delivery | GivenUp | int | None:
    session_id = await home.session_id()
    return await home.store.outbox.claim(session_id, home.worker.worker_id)


async def beat(home: Home) -> None:
    await home.store.workers.beat(home.worker.worker_id)


@waits
@jumps
@pytest.mark.parametrize("moment", ["running", "down"])
async def test_a_wait_never_has_more_left_than_its_length(
    home: Home, wait: Postpone, jump_ms: int, moment: str
) -> None:
    await settle(home, await owe(home), wait)
    jump(home, jump_ms)
    if moment == "down":
        await home.reopen(crash=True)
    else:
        await beat(home)

    left_ms = await take(home)
    if isinstance(left_ms, int):
        assert left_ms <= 30 * SECOND_MS
        home.clock.move(left_ms)
        assert isinstance(await take(home), Delivery)
    else:
        assert isinstance(left_ms, Delivery)


async def test_a_waiting_caller_for_a_delivery_is_told_that_it_is_due_sooner(home: Home) -> None:
    await settle(home, await owe(home), SLOW_DOWN)
    jump(home, -DAY_MS)
    home.wakeups.hints.clear()
    await beat(home)

    assert OUTBOX_SOONER in home.wakeups.hints


@jumps
async def test_what_is_held_stays_held(home: Home, jump_ms: int) -> None:
    await settle(home, await owe(home), held("it may have arrived"))
    jump(home, jump_ms)
    await beat(home)
    await home.reopen(crash=True)

    assert await take(home) is None
    due = await home.store.outbox.due(DeliveryId(0))
    assert due == ()


@jumps
async def test_a_turn_that_waits_for_its_time_waits_no_longer_than_that(
    home: Home, jump_ms: int
) -> None:
    claim = await home.work_on()
    await home.store.turns.postpone(claim, 8 * SECOND_MS, "busy")
    jump(home, jump_ms)
    await beat(home)

    assert (await home.store.turns.due_in_ms() or 0) <= 8 * SECOND_MS


@jumps
@pytest.mark.parametrize("moment", ["at once", "after a heartbeat"])
async def test_a_jump_while_we_run_makes_no_postponed_turn_stale(
    home: Home, jump_ms: int, moment: str
) -> None:
    """Issue 12, A5, B13: red before, a jump beyond `fresh_seconds` made the turn stale, and the
    person was asked whether it should go on."""
    claim = await home.work_on()
    await home.step(claim)
    await home.store.turns.postpone(claim, 8 * SECOND_MS, "busy")
    jump(home, jump_ms)
    if moment == "after a heartbeat":
        await beat(home)
    await home.recover(claim.turn_id)
    await home.wait_until_due()

    again = await home.claim()
    assert again.turn_id == claim.turn_id


@jumps
async def test_idle_time_goes_on_after_a_jump(home: Home, jump_ms: int) -> None:
    """Issue 12, A5: a turn neither gets stale by it nor stays fresh for as long as the clock was
    set back."""
    claim = await home.work_on()
    await home.store.turns.postpone(claim, 8 * SECOND_MS, "busy")
    home.clock.move(HOUR_MS // 2)
    jump(home, jump_ms)
    await beat(home)
    assert (await home.recover(claim.turn_id)).rule == "fresh"
    home.clock.move(HOUR_MS)

    assert (await home.recover(claim.turn_id)).rule == "stale"


@jumps
async def test_a_turn_that_died_is_as_old_as_it_was(home: Home, jump_ms: int) -> None:
    """Issue 12, A5: its worker's last sign of life jumps as well, while the next boot waits to
    take it up."""
    claim = await home.work_on()
    await home.reopen(crash=True)
    await beat(home)
    jump(home, jump_ms)
    await beat(home)

    assert (await home.recover(claim.turn_id)).rule == "fresh"


async def test_killed_right_after_a_jump_nothing_looks_like_a_downtime(home: Home) -> None:
    """Issue 12, A5: whatever is committed after the jump moves the last sign of life, too."""
    claim = await home.work_on()
    jump(home, DAY_MS)
    await home.say("one more", chat="bob")

    assert (await home.die_and_recover(claim.turn_id)).rule == "fresh"


@jumps
@pytest.mark.parametrize("moment", ["at once", "after a heartbeat"])
async def test_a_jump_while_we_run_expires_no_delivery(
    home: Home, jump_ms: int, moment: str
) -> None:
    """Also where no heartbeat came in between: the transaction that decides notices it."""
    await settle(home, await owe(home), Postpone(wait_ms=0, is_ambiguous=False, reason="busy"))
    jump(home, jump_ms)
    if moment == "after a heartbeat":
        await beat(home)

    assert isinstance(await take(home), Delivery)


@jumps
async def test_an_age_goes_on_after_a_jump(home: Home, jump_ms: int) -> None:
    """It neither lives for ever nor ends too early."""
    again = Postpone(wait_ms=0, is_ambiguous=False, reason="busy")
    await settle(home, await owe(home), again)
    home.clock.move(20 * HOUR_MS)
    jump(home, jump_ms)
    taken = await take(home)
    assert isinstance(taken, Delivery)
    assert taken.age_ms == 20 * HOUR_MS
    await settle(home, taken, again)
    home.clock.move(5 * HOUR_MS)

    assert isinstance(await take(home), GivenUp)


@jumps
async def test_what_is_owed_after_a_jump_is_new(home: Home, jump_ms: int) -> None:
    """A row that is stored by the very transaction that notices the jump does not jump with the
    older ones."""
    claim = await home.work_on()
    jump(home, jump_ms)
    await home.answer(claim)

    assert (await home.take_delivery()).age_ms == 0


@jumps
async def test_after_a_downtime_a_delivery_gets_one_try(home: Home, jump_ms: int) -> None:
    again = Postpone(wait_ms=0, is_ambiguous=False, reason="busy")
    await settle(home, await owe(home), again)
    jump(home, jump_ms)
    await home.reopen(crash=True)
    taken = await take(home)
    assert isinstance(taken, Delivery)
    await settle(home, taken, again)
    home.clock.move(SECOND_MS)

    after = await take(home)
    assert isinstance(after, GivenUp if jump_ms > 0 else Delivery)


@jumps
@pytest.mark.parametrize("moment", ["running", "down"])
async def test_an_open_question_is_as_old_as_it_was(home: Home, jump_ms: int, moment: str) -> None:
    claim = await home.work_on()
    await home.ask(claim)
    home.clock.move(10 * HOUR_MS)
    await beat(home)
    jump(home, jump_ms)
    if moment == "down":
        await home.reopen(crash=True)
    if moment == "down" and jump_ms > 0:
        assert await home.store.turns.expire(10) == 1, "that looks like a downtime"
        return

    assert await home.store.turns.expire(10) == 0
    home.clock.move(13 * HOUR_MS)
    assert await home.store.turns.expire(10) == 0
    home.clock.move(HOUR_MS)
    assert await home.store.turns.expire(10) == 1


@jumps
@pytest.mark.parametrize("moment", ["running", "down"])
async def test_a_browser_is_let_in_for_its_time_whatever_the_clock_says(
    home: Home, jump_ms: int, moment: str
) -> None:
    """Issue 15, V10: 30 days at most. A clock that was set back a year made it thirteen months."""
    await home.store.browsers.make(cookie_hash="c", proof_hash="p", label="desk")
    jump(home, jump_ms)
    if moment == "down":
        await home.reopen(crash=True)
    await beat(home)

    found = await home.store.browsers.find("c")
    if jump_ms < 0 or moment == "running":
        assert found is not None
    for _ in range(LIFE_MS // DAY_MS + 1):
        if (found := await home.store.browsers.find("c")) is not None:
            await home.store.browsers.use(found[0].browser_id)
        home.clock.move(DAY_MS)
    assert await home.store.browsers.find("c") is None
