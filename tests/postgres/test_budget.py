"""One budget for several nodes: no two find the same room, and a node that died keeps its share."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.domain.budget import Bill, BudgetLimits, BudgetUnit
from tests.harness.homes import Home
from tests.harness.postgres_backend import Database, PostgresBackend
from tests.harness.spending import LIMIT, reserve, spend_at_once, spent


@pytest.fixture
async def nodes(database: Database, tmp_path: Path) -> AsyncIterator[list[Home]]:
    limits = BudgetLimits(unit=BudgetUnit.TOKENS, day=LIMIT)
    made = [Home(backend=PostgresBackend(tmp_path / name, database=database)) for name in "ab"]
    for node in made:
        node.world = replace(node.world, budget=limits)
        await node.boot()
    yield made
    for node in made:
        await node.store.close()


async def test_two_nodes_never_pass_a_limit_by_more_than_one_reply(nodes: list[Home]) -> None:
    """Issue 21, on PostgreSQL."""
    for _ in range(3):
        assert await spend_at_once(*nodes, calls=24) < LIMIT + 150


async def test_what_a_dead_node_had_reserved_counts_as_spent(nodes: list[Home]) -> None:
    dead, living = nodes
    claim = await dead.work_on("hello")
    assert isinstance(await reserve(dead, claim, 400), Bill)
    dead.sql(
        f"UPDATE workers SET ended_ms = heartbeat_ms, ended_how = 'killed' "
        f"WHERE worker_id = {dead.worker.worker_id}"
    )
    assert isinstance(
        await reserve(living, await living.work_on(chat="other", key="other"), 100), Bill
    )
    assert await spent(living) == (400, 100)
