"""Another node commits between the look of a sweep and its lock: what was seen is looked at again.

On PostgreSQL a statement sees what others committed before it. Here the change of the other node is
made in the moment in which the sweep asks for the key.
"""

from collections.abc import Callable

import pytest

from koboshi.domain.schedule import ScheduleState
from tests.harness.fake_time import DAY_MS, HOUR_MS
from tests.harness.homes import Home
from tests.harness.named_keys import CheckedTransaction
from tests.harness.timed import LIMIT, a_clockwork, an_order

Meanwhile = Callable[[str], None]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Have a statement carried out when a key is locked for the first time."""

    def arrange(statement: str) -> None:
        todo = [statement]
        lock = CheckedTransaction.try_lock

        def locked(tx: CheckedTransaction, key: int) -> bool:
            is_held = lock(tx, key)
            while todo:
                tx._connection.execute(todo.pop())
            return is_held

        monkeypatch.setattr(CheckedTransaction, "try_lock", locked)

    return arrange


async def test_a_question_that_was_asked_anew_meanwhile_does_not_expire(
    home: Home, meanwhile: Meanwhile
) -> None:
    claim = await home.work_on("one")
    await home.ask(claim)
    home.clock.move(DAY_MS)
    meanwhile(f"UPDATE turns SET expires_ms = expires_ms + {DAY_MS}")

    assert await home.store.turns.expire(10) == 0
    assert (await home.view(claim.turn_id)).state == "waiting"


async def test_a_schedule_that_was_paused_meanwhile_does_not_fire(
    home: Home, meanwhile: Meanwhile
) -> None:
    clock = await a_clockwork(home)
    made = await clock.make(an_order())
    home.clock.move(HOUR_MS)
    meanwhile("UPDATE schedules SET state = 'paused', due_ms = NULL, reason = 'by hand'")

    assert (await home.store.schedules.fire(LIMIT)).decided == ()
    assert await clock.verdicts(made) == []
    (view,) = await home.store.schedules.views(limit=10)
    assert view.schedule.state is ScheduleState.PAUSED


async def test_a_turn_that_another_node_works_on_by_now_is_not_judged(
    home: Home, meanwhile: Meanwhile
) -> None:
    claim = await home.work_on("one")
    await home.store.turns.release(claim)
    home.clock.move(DAY_MS)
    meanwhile(
        "UPDATE turns SET state = 'running', epoch = epoch + 1, worker_id = "
        "(SELECT max(worker_id) FROM workers WHERE ended_ms IS NULL)"
    )

    assert await home.claims() == ()
    assert (await home.view(claim.turn_id)).state == "running"
