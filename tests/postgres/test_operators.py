"""What an operator does to a server while gateways use it: writes wait and are made once, or the
start says what is wrong."""

import shutil
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from anyio import create_task_group, to_thread
from psycopg.conninfo import make_conninfo

from koboshi.clock import SystemClock
from koboshi.domain.errors import HomeCopied, StoreFailed, StoreRefused
from koboshi.stores.options import StoreOptions
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.store import PostgresStore, open_postgres
from koboshi.stores.postgres.wire import ServerError, Wire, WireAnswer, WireRequest
from tests.harness.fake_time import RecordingWakeups
from tests.harness.homes import Home, a_world
from tests.harness.polling import until
from tests.harness.postgres import Cluster, NoPostgres, a_cluster, refuse_or_skip
from tests.harness.postgres_backend import Database, PostgresBackend

ROLE = "gateway"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server whose settings and roles a test may change."""
    try:
        made = a_cluster()
    except NoPostgres as error:
        refuse_or_skip(str(error))
    made.ask(f"CREATE ROLE {ROLE} LOGIN")
    yield made
    made.remove()


@pytest.fixture
async def at_work(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Home]:
    """A home whose role owns its database and nothing else."""
    database = Database("operated", cluster.url())
    cluster.ask(f"ALTER DATABASE operated OWNER TO {ROLE}")

    def connect() -> Wire:
        url = make_conninfo(database.url, user=ROLE)
        wire = Wire.connect(url, statements(), SystemClock())
        wire.one("SET lock_timeout = '200ms'", within_s=5)
        return wire

    backend = PostgresBackend(tmp_path / "home", database=database, connect=connect)
    home = Home(backend=backend)
    await home.boot()
    yield home
    await home.store.close()
    database.close()


async def opened(url: str, home: Path) -> PostgresStore:
    return await open_postgres(
        url,
        home,
        world=a_world(),
        clock=SystemClock(),
        wakeups=RecordingWakeups(),
        options=StoreOptions(lock_wait_seconds=0, accepts_loss=True),
    )


async def waits_then_is_stored_once(home: Home, cluster: Cluster, mend: str, words: str) -> None:
    """A message that comes while the server refuses, until `mend` is run there."""
    async with create_task_group() as tasks:
        tasks.start_soon(partial(home.say, "hello", key="meanwhile"))
        await until(lambda: words in (home.store.trouble or ""), "the store says why writes wait")
        await to_thread.run_sync(cluster.ask, mend)
        if mend.startswith("ALTER SYSTEM"):
            await to_thread.run_sync(cluster.ask, "SELECT pg_reload_conf()")

    assert len(home.rows().of("inbox", external_id="meanwhile")) == 1
    assert home.store.trouble is None
    assert home.failures == []


class Shared(Wire):
    """A connection that another client has used before, as behind a pooler."""

    prepares_first: ClassVar[str] = "compression_set"

    def round(self, requests: Iterable[WireRequest], **limits: Any) -> list[WireAnswer]:
        first, *others = requests
        if not self._prepared:
            super().round([WireRequest(f"PREPARE {self.prepares_first} AS SELECT 1", {})], **limits)
        return super().round([first, *others], **limits)


async def test_a_pooler_in_transaction_mode_is_refused_in_words(
    cluster: Cluster, tmp_path: Path
) -> None:
    database = Database("pooled", cluster.url())
    connect = partial(Shared.connect, database.url, statements(), SystemClock())
    home = Home(backend=PostgresBackend(tmp_path, database=database, connect=connect))
    with pytest.raises(StoreRefused, match="pooler in transaction mode"):
        await home.open()
    database.close()


END_ALL = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
    f"WHERE usename = '{ROLE}' AND pid <> pg_backend_pid()"
)


async def test_a_role_that_is_locked_out_for_a_while_is_waited_for(
    cluster: Cluster, at_work: Home
) -> None:
    """As while a password is changed, on the server first."""
    cluster.ask(f"ALTER ROLE {ROLE} NOLOGIN")
    cluster.ask(END_ALL)
    mend = f"ALTER ROLE {ROLE} LOGIN"
    await waits_then_is_stored_once(at_work, cluster, mend, "not permitted to log in")


async def test_a_server_without_a_connection_left_is_waited_for(
    cluster: Cluster, at_work: Home
) -> None:
    cluster.ask(f"ALTER ROLE {ROLE} CONNECTION LIMIT 0")
    cluster.ask(END_ALL)
    mend = f"ALTER ROLE {ROLE} CONNECTION LIMIT -1"
    await waits_then_is_stored_once(at_work, cluster, mend, "too many connections")


async def test_a_server_that_is_set_read_only_is_waited_for(
    cluster: Cluster, at_work: Home
) -> None:
    cluster.ask("ALTER SYSTEM SET default_transaction_read_only = on")
    cluster.ask("SELECT pg_reload_conf()")
    await until(
        lambda: cluster.ask("SHOW default_transaction_read_only") == "on", "it is read-only"
    )
    mend = "ALTER SYSTEM SET default_transaction_read_only = off"
    await waits_then_is_stored_once(at_work, cluster, mend, "takes no writes")


async def test_a_start_on_a_standby_says_so(cluster: Cluster, tmp_path: Path) -> None:
    url = make_conninfo(cluster.url(), options="-c default_transaction_read_only=on")
    with pytest.raises(StoreFailed, match="target_session_attrs"):
        await opened(url, tmp_path)


FULL = """
CREATE FUNCTION has_no_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION has_no_room();
"""


async def test_a_server_without_room_is_waited_for(at_work: Home) -> None:
    at_work.sql(FULL)
    async with create_task_group() as tasks:
        tasks.start_soon(partial(at_work.say, "hello", key="meanwhile"))
        await until(lambda: "extend file" in (at_work.store.trouble or ""), "it says why")
        at_work.sql("DROP TRIGGER full_disk ON inbox")

    assert len(at_work.rows().of("inbox", external_id="meanwhile")) == 1
    assert at_work.failures == []


async def test_a_table_that_another_program_locks_is_waited_for(at_work: Home) -> None:
    url = at_work.backend.database.url  # type: ignore[attr-defined]
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE inbox IN ACCESS EXCLUSIVE MODE")
        async with create_task_group() as tasks:
            tasks.start_soon(partial(at_work.say, "hello", key="meanwhile"))
            await until(lambda: "lock timeout" in (at_work.store.trouble or ""), "it says why")
            other.rollback()

    assert len(at_work.rows().of("inbox", external_id="meanwhile")) == 1


async def test_a_right_that_is_taken_away_fails_its_caller_alone(at_work: Home) -> None:
    await at_work.say("before", key="before")
    at_work.sql(f"REVOKE INSERT ON inbox FROM {ROLE}")
    with pytest.raises(ServerError, match="permission denied"):
        await at_work.say("meanwhile", key="meanwhile")
    await at_work.store.workers.beat(at_work.worker.worker_id)
    at_work.sql(f"GRANT INSERT ON inbox TO {ROLE}")
    await at_work.say("after", key="after")

    assert [row["external_id"] for row in at_work.rows().inbox] == ["before", "after"]
    assert at_work.failures == []


async def test_a_role_without_special_rights_can_tell_its_server(at_work: Home) -> None:
    """Else a promoted standby would not be noticed."""
    ((server,),) = at_work.sql("SELECT server FROM koboshi_schema")
    assert "/00000001" in str(server)


async def test_a_role_that_may_make_no_tables_is_told_what_it_needs(
    cluster: Cluster, tmp_path: Path
) -> None:
    theirs = Database("of_others", cluster.url())
    theirs.past.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    with pytest.raises(StoreRefused, match="GRANT CREATE ON SCHEMA public"):
        await opened(make_conninfo(theirs.url, user=ROLE), tmp_path)
    theirs.close()


async def test_a_copy_of_a_home_ends_the_first_one_with_words_for_a_person(
    at_work: Home, tmp_path: Path
) -> None:
    """Without them both would be started again by their service managers, and end each other."""
    shutil.copytree(tmp_path / "home", tmp_path / "copy", ignore=shutil.ignore_patterns("*.lock"))
    backend = at_work.backend
    assert isinstance(backend, PostgresBackend)
    copy = Home(backend=PostgresBackend(tmp_path / "copy", database=backend.database))
    await copy.boot()

    with pytest.raises(HomeCopied, match="a copy of this home"):
        await at_work.say("hello")
    await copy.say("hello")
    await copy.store.close()
