"""A worker that is dead gets its end from another one, and only if it gave no sign since."""

from collections.abc import Awaitable, Callable

import pytest

from koboshi.runtime.burying import Burying
from tests.harness.fake_time import SECOND_MS
from tests.harness.homes import Home

OTHER = 77
LEASE_S = 15


def another_worker(home: Home) -> None:
    home.sql(
        f"INSERT INTO workers (worker_id, host, pid, birth, version, started_ms, heartbeat_ms, "
        f"node, home) VALUES ({OTHER}, 'b', 1, 'x/1', '0.1', 1, 1, 'b', 'elsewhere')",
    )


async def test_a_worker_that_gave_a_sign_is_not_buried(home: Home) -> None:
    another_worker(home)
    (sign,) = await home.store.workers.others(home.worker.worker_id)
    assert (sign.worker_id, sign.node) == (OTHER, "b")
    home.sql(f"UPDATE workers SET heartbeat_ms = 2 WHERE worker_id = {OTHER}")

    assert not await home.store.workers.bury(sign)

    (sign,) = await home.store.workers.others(home.worker.worker_id)
    assert await home.store.workers.bury(sign)
    assert not await home.store.workers.bury(sign), "it has its end"
    assert home.rows().one("workers", worker_id=OTHER)["ended_how"] == "killed"
    assert await home.store.workers.others(home.worker.worker_id) == ()


@pytest.fixture
def burying(home: Home) -> Burying:
    return Burying(
        store=home.store,
        clock=home.clock,
        worker_id=home.worker.worker_id,
        lease_seconds=LEASE_S,
        look_seconds=1,
        rescue=rescue_of(home),
    )


def rescue_of(home: Home) -> Callable[[], Awaitable[object]]:
    async def rescue() -> None:
        for turn_id in await home.store.turns.unowned(with_suspended=False):
            await home.store.turns.recover(turn_id)

    return rescue


async def pass_seconds(home: Home, burying: Burying, seconds: int) -> None:
    for _ in range(seconds):
        home.clock.move(SECOND_MS)
        await home.store.workers.beat(home.worker.worker_id)
        burying.has_beaten()
        await burying.look()


async def test_what_a_silent_worker_held_is_free_after_a_lease(
    home: Home, burying: Burying
) -> None:
    claim = await home.work_on()
    another_worker(home)
    home.sql(f"UPDATE turns SET worker_id = {OTHER}")

    await pass_seconds(home, burying, LEASE_S)
    assert burying.buried == 0
    await pass_seconds(home, burying, 2)

    assert burying.buried == 1
    await home.wait_until_due()
    assert (await home.claim()).turn_id == claim.turn_id


async def test_a_worker_that_beats_is_left_alone(home: Home, burying: Burying) -> None:
    another_worker(home)
    for beat in range(6):
        await pass_seconds(home, burying, 10)
        home.sql(f"UPDATE workers SET heartbeat_ms = {beat + 10} WHERE worker_id = {OTHER}")

    assert burying.buried == 0


async def test_a_node_that_was_away_itself_buries_no_other(home: Home, burying: Burying) -> None:
    """The server was gone for a minute: no row has changed, and all nodes live."""
    another_worker(home)
    await pass_seconds(home, burying, 5)
    home.clock.move(60 * SECOND_MS)

    await pass_seconds(home, burying, LEASE_S - 1)
    assert burying.buried == 0
