"""A server that restarts, stalls, or cannot be trusted."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
from anyio import create_task_group

from koboshi.clock import SystemClock
from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.stores.options import StoreOptions
from koboshi.stores.postgres.batches import TIMEOUT
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.store import open_postgres
from koboshi.stores.postgres.wire import ServerError, Wire
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


SLOW_INSERT = """
CREATE FUNCTION sleeps() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF NEW.external_id = 'slow' THEN PERFORM pg_sleep(2); END IF; RETURN NEW; END $$;
CREATE TRIGGER slow BEFORE INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION sleeps();
"""


async def test_a_statement_that_always_takes_too_long_holds_up_no_other_caller(
    database: Database, tmp_path: Path
) -> None:
    def connect() -> Wire:
        wire = Wire.connect(database.url, statements(), SystemClock())
        wire.one("SET statement_timeout = '200ms'", within_s=5)
        return wire

    backend = PostgresBackend(tmp_path / "home", database=database, connect=connect)
    home = Home(backend=backend)
    await home.boot()
    home.sql(SLOW_INSERT)
    heard: list[str] = []

    async def say(key: str, chat: str) -> None:
        try:
            await home.say("hello", key=key, chat=chat)
        except ServerError as error:
            heard.append(error.state)
        else:
            heard.append(key)

    async with create_task_group() as tasks:
        for key in ("slow", "one", "two"):
            tasks.start_soon(say, key, f"chat-{key}")

    assert sorted(heard) == [TIMEOUT, "one", "two"]
    assert home.failures == []
    await home.store.close()
    home.sql("DROP TRIGGER slow ON inbox; DROP FUNCTION sleeps()")
