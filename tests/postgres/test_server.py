"""A server that restarts, stalls, or cannot be trusted."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
from anyio import create_task_group

from koboshi.clock import SystemClock
from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.stores.options import StoreOptions
from koboshi.stores.postgres.store import open_postgres
from tests.harness.fake_time import RecordingWakeups
from tests.harness.homes import Home, a_world
from tests.harness.polling import until
from tests.harness.postgres import Cluster, NoPostgres, a_cluster, refuse_or_skip
from tests.harness.postgres_backend import Database, PostgresBackend


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server of its own, which a test may end."""
    try:
        made = a_cluster()
    except NoPostgres as error:
        refuse_or_skip(str(error))
    yield made
    made.remove()


@pytest.fixture
async def at_cluster(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Home]:
    database = Database("own", cluster.url())
    home = Home(backend=PostgresBackend(tmp_path / "home", database=database))
    await home.boot()
    yield home
    await home.store.close()
    database.close()


async def test_a_restart_of_the_server_in_the_middle_loses_nothing(
    cluster: Cluster, at_cluster: Home
) -> None:
    """It ends without a word to its clients, as in a crash, and recovers from its log."""
    home = at_cluster
    claim = await home.work_on("one")
    cluster.stop()

    async with create_task_group() as tasks:
        tasks.start_soon(home.answer, claim, "an answer")
        await until(lambda: home.store.trouble, "the store says why writes wait")
        cluster.start()

    assert home.store.trouble is None
    assert await home.store.turns.unowned(with_suspended=True) == (), "the claim outlived it"
    assert [each.text for each in await home.deliver()] == ["an answer"]


async def test_a_server_that_does_not_flush_is_refused(database: Database, tmp_path: Path) -> None:
    opened = partial(
        open_postgres, database.url, tmp_path, clock=SystemClock(), wakeups=RecordingWakeups()
    )
    with pytest.raises(StoreRefused, match="fsync is off"):
        await opened(world=a_world(), options=StoreOptions(lock_wait_seconds=0))


async def test_a_database_of_another_program_is_left_as_it_is(
    tmp_path: Path,
) -> None:
    theirs = Database("koboshi_test_theirs")
    theirs.past.execute("CREATE TABLE theirs (id int)")
    home = Home(backend=PostgresBackend(tmp_path, database=theirs))

    with pytest.raises(StoreRefused, match="another program"):
        await home.boot()

    tables = theirs.past.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert tables.fetchall() == [("theirs",)]
    theirs.close()


async def test_tables_of_another_state_of_development_are_refused(
    database: Database, tmp_path: Path
) -> None:
    home = Home(backend=PostgresBackend(tmp_path, database=database))
    await home.boot()
    await home.store.close()
    (before,) = home.sql("SELECT shape FROM koboshi_schema")
    home.sql("UPDATE koboshi_schema SET shape = 'another'")

    with pytest.raises(StoreRefused, match="state of development"):
        await home.open()

    home.sql("UPDATE koboshi_schema SET shape = 'another', oldest_code = 99")
    with pytest.raises(StoreRefused, match="newer koboshi"):
        await home.open()
    home.sql(f"UPDATE koboshi_schema SET shape = '{before[0]}', oldest_code = 1")


async def test_a_server_that_cannot_be_reached_at_a_start_is_a_failure(tmp_path: Path) -> None:
    nowhere = f"host={tmp_path} dbname=koboshi"
    with pytest.raises(StoreFailed, match="cannot be reached"):
        await open_postgres(
            nowhere, tmp_path, world=a_world(), clock=SystemClock(), wakeups=RecordingWakeups()
        )
