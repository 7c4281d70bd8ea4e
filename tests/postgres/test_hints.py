"""Hints between nodes: told after the commit, lost without harm, bounded."""

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from koboshi.ports.wakeups import JOURNAL, TURNS
from koboshi.stores.postgres.listen import BYTES_MAX, EVERYTHING, payload_of, topics_in
from koboshi.stores.postgres.store import PostgresStore
from tests.harness.homes import Home
from tests.harness.polling import until
from tests.harness.postgres_backend import Database, PostgresBackend


@pytest.fixture
async def nodes(database: Database, tmp_path: Path) -> AsyncIterator[tuple[Home, Home]]:
    here, there = (
        Home(backend=PostgresBackend(tmp_path / name, database=database)) for name in ("a", "b")
    )
    for node in (here, there):
        await node.boot()
        store = node.store
        assert isinstance(store, PostgresStore)
        store.listen()
        await until(partial(getattr, store, "is_listening"), "it listens")
    yield here, there
    for node in (here, there):
        await node.store.close()


async def test_what_one_node_has_committed_wakes_the_other(nodes: tuple[Home, Home]) -> None:
    here, there = nodes
    there.wakeups.hints.clear()
    await here.say("hello")

    await until(lambda: {TURNS, JOURNAL} <= set(there.wakeups.hints), "the other node is woken")


async def test_a_node_is_not_woken_twice_by_its_own_hints(nodes: tuple[Home, Home]) -> None:
    here, there = nodes
    await here.say("hello")
    await until(lambda: TURNS in there.wakeups.hints, "the other node is woken")

    assert here.wakeups.hints.count(TURNS) == 1


async def test_a_listener_whose_connection_is_ended_listens_again(
    nodes: tuple[Home, Home], database: Database
) -> None:
    """It cannot know what it missed, so it wakes all."""
    here, there = nodes
    await here.say("hello", chat="one", key="one")
    await until(lambda: TURNS in there.wakeups.hints, "the other node is woken")
    there.wakeups.hints.clear()
    database.past.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND query LIKE 'LISTEN%'"
    )

    await until(lambda: EVERYTHING in there.wakeups.hints, "all are woken")
    await here.say("hello", chat="two", key="two")
    await until(lambda: TURNS in there.wakeups.hints, "hints come again")


def test_a_payload_is_bounded_and_the_node_that_told_it_hears_nothing() -> None:
    many = {f"claim:{number}" for number in range(2_000)}
    payload = payload_of("a", many)

    assert len(payload) <= BYTES_MAX
    assert topics_in("b", payload) == {EVERYTHING}
    assert topics_in("a", payload) == set()
    assert topics_in("b", payload_of("a", {"turns"})) == {"turns"}
    for foreign in ("", "x", "[]", "{}", json.dumps(["a", 1])):
        assert topics_in("b", foreign) == set()
