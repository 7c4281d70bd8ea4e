"""Schedules and goals are those of all nodes: whichever looks first fires, and once."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from anyio import create_task_group

from koboshi.domain.goal import GoalClaim, GoalState, Judgement, JudgeVerdict
from koboshi.domain.ids import ScheduleId
from koboshi.domain.wish import BeginGoal
from tests.harness.fake_time import HOUR_MS, FakeClock
from tests.harness.homes import Home
from tests.harness.postgres_backend import Database, PostgresBackend
from tests.harness.timed import LIMIT, a_clockwork, an_order

SCHEDULES, HOURS = 5, 6
CONTINUE = Judgement(verdict=JudgeVerdict.CONTINUE, reason="one fails")


@pytest.fixture
async def nodes(database: Database, tmp_path: Path) -> AsyncIterator[tuple[Home, Home]]:
    """Two nodes by one clock."""
    clock = FakeClock()
    made = [
        Home(PostgresBackend(tmp_path / name, database=database, node=name), clock)
        for name in ("a", "b")
    ]
    for node in made:
        await node.boot()
    yield made[0], made[1]
    for node in made:
        await node.store.close()


async def test_what_is_due_fires_once_over_all_nodes(nodes: tuple[Home, Home]) -> None:
    here, _ = nodes
    clock = await a_clockwork(here)
    made = [await clock.make(an_order(name=f"{number}")) for number in range(SCHEDULES)]
    fired: Counter[ScheduleId] = Counter()

    async def fire(node: Home) -> None:
        found = await node.store.schedules.fire(LIMIT)
        fired.update(schedule_id for schedule_id, _ in found.decided)

    for _ in range(HOURS):
        here.clock.move(HOUR_MS)
        # What one node leaves because the other has the key, it finds when it looks again.
        for _ in range(2):
            async with create_task_group() as tasks:
                for node in nodes:
                    tasks.start_soon(fire, node)
        for node in nodes:
            while claims := await node.claims():
                for claim in claims:
                    await node.answer(claim)

    assert fired == {each.schedule_id: HOURS for each in made}
    for each in made:
        verdicts = [verdict for verdict, _, _ in await clock.verdicts(each)]
        assert verdicts == ["fired"] * HOURS


async def test_a_goal_is_judged_by_one_node_and_by_another_when_that_is_dead(
    nodes: tuple[Home, Home],
) -> None:
    here, there = nodes
    clock = await a_clockwork(here)
    await clock.wish(BeginGoal(text="make the tests pass"))
    await clock.answer_all("one test fails")

    taken: list[GoalClaim] = []
    for _ in range(2):
        for node in nodes:
            taken += await node.store.goals.claim(node.worker.worker_id, 10)
    (claim,) = taken
    assert claim.worker_id == here.worker.worker_id

    (sign,) = await there.store.workers.others(there.worker.worker_id)
    await here.store.close()
    assert await there.store.workers.bury(sign)
    (again,) = await there.store.goals.claim(there.worker.worker_id, 10)
    await there.store.goals.judged(claim, CONTINUE, 0)
    assert await state_of_goal(there) == (GoalState.JUDGING, 1), "the claim of the dead is void"
    await there.store.goals.judged(again, CONTINUE, 0)

    assert await state_of_goal(there) == (GoalState.ACTIVE, 2)
    assert len(await there.claims()) == 1, "one step, at the node that lives"


async def state_of_goal(home: Home) -> tuple[GoalState, int]:
    (view,) = await home.store.goals.views(limit=10)
    return view.goal.state, view.goal.step
