"""Connections that break, and commits of unknown outcome: no write is lost, and none is made
twice."""

import random
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from anyio import create_task_group, to_thread

from koboshi.domain.errors import Buried, StoreFailed
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.store import PostgresStore
from koboshi.stores.postgres.translate import Statement
from tests.harness.homes import Home
from tests.harness.polling import until
from tests.harness.postgres_backend import Database, PostgresBackend
from tests.harness.proxy import AtCommit, Proxy
from tests.harness.tally import WANTS_ALL, found_by

RACES = 300 if WANTS_ALL else 12


def unknown(home: Home) -> dict[str, int]:
    """Commits of unknown outcome so far, by what became of them."""
    assert isinstance(home.store, PostgresStore)
    return dict(home.store.unknown_commits)


async def says_once(home: Home, key: str) -> None:
    """A message is stored once, and its caller knows that it is new."""
    receipt = await home.say("hello", key=key)

    assert not receipt.is_duplicate, "it was committed before, and committed again"
    assert len(home.rows().of("inbox", external_id=key)) == 1


async def test_a_commit_that_the_server_never_heard_of_is_made_again(
    proxied: Home, proxy: Proxy
) -> None:
    proxy.break_commit(AtCommit.BEFORE)

    await says_once(proxied, "one")

    assert unknown(proxied) == {"committed": 0, "repeated": 1}


async def test_a_commit_whose_answer_is_lost_is_not_made_again(proxied: Home, proxy: Proxy) -> None:
    proxy.break_commit(AtCommit.AFTER)

    await says_once(proxied, "one")

    assert unknown(proxied) == {"committed": 1, "repeated": 0}


async def test_whatever_the_instant_of_a_cut_a_write_is_made_once(
    proxied: Home, proxy: Proxy
) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for number in range(RACES):
        where = chance.choice([AtCommit.BEFORE, AtCommit.AFTER, AtCommit.RACING])
        proxy.break_commit(where)
        await says_once(proxied, f"key-{number}")

    assert sum(unknown(proxied).values()) == RACES


async def test_a_connection_that_broke_in_a_pause_costs_nothing(
    proxied: Home, proxy: Proxy
) -> None:
    await says_once(proxied, "one")
    proxy.cut()

    await says_once(proxied, "two")
    assert await proxied.store.views.status() is not None
    assert unknown(proxied) == {"committed": 0, "repeated": 0}


async def test_writes_and_looks_wait_while_the_server_cannot_be_reached(
    proxied: Home, proxy: Proxy
) -> None:
    await says_once(proxied, "one")
    proxy.refuse()

    async with create_task_group() as tasks:
        tasks.start_soon(says_once, proxied, "two")
        tasks.start_soon(proxied.store.views.status)
        await until(lambda: proxied.store.trouble, "the store says why writes wait")
        assert "cannot be reached" in (proxied.store.trouble or "")
        proxy.accept()

    assert proxied.store.trouble is None


async def test_a_store_that_is_asked_to_stop_waits_for_no_server(
    proxied: Home, proxy: Proxy
) -> None:
    proxy.refuse()
    proxied.store.stop_waiting()

    with pytest.raises(StoreFailed):
        await proxied.say("hello")
    assert proxied.failures, "the gateway is told that it must end"


async def test_a_database_that_went_back_ends_the_process(proxied: Home, proxy: Proxy) -> None:
    """As after the failover to a standby that had not got everything."""
    await proxied.say("one")
    await proxied.say("two")
    worker_id = proxied.worker.worker_id
    proxied.sql(f"UPDATE workers SET batch = batch - 1 WHERE worker_id = {worker_id}")
    proxy.break_commit(AtCommit.BEFORE)

    with pytest.raises(StoreFailed, match="went back"):
        await proxied.say("three")
    assert [str(each) for each in proxied.failures if "went back" in str(each)]


async def test_a_worker_that_another_node_has_ended_writes_nothing(home: Home) -> None:
    await home.say("one", key="one")
    home.sql("UPDATE workers SET ended_ms = 1, ended_how = 'killed'")

    with pytest.raises(Buried):
        await home.say("two", key="two")

    assert [row["external_id"] for row in home.rows().inbox] == ["one"]
    assert isinstance(home.failures[0], Buried)


async def test_a_node_that_stands_still_in_a_batch_gives_its_keys_back(
    proxied: Home, proxy: Proxy, database: Database, tmp_path: Path
) -> None:
    """The server ends the batch after three seconds: another node gets the chat, and the first one
    makes its batch again when the network is back."""
    other = Home(backend=PostgresBackend(tmp_path / "other", database=database))
    await other.boot()
    await proxied.say("one", key="one")
    proxy.break_commit(AtCommit.STALLED)

    async with create_task_group() as tasks:
        tasks.start_soon(says_once, proxied, "two")
        await until(proxy.broken.is_set, "the batch stands still")
        await other.say("three", key="three")
        stored = [row["external_id"] for row in other.rows().inbox]
        assert stored == ["one", "three"]
        proxy.flow()

    assert unknown(proxied) == {"committed": 0, "repeated": 1}
    await other.store.close()


SLOW_COMMIT = """
CREATE FUNCTION sleeps() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON inbox DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION sleeps();
"""


@pytest.fixture
async def slow_commits(proxied: Home) -> object:
    """The server takes its time for a commit, so a look comes while it is under way."""
    proxied.sql(SLOW_COMMIT)
    yield None
    await to_thread.run_sync(proxied.sql, "DROP TRIGGER slow ON inbox; DROP FUNCTION sleeps()")


@pytest.mark.usefixtures("slow_commits")
async def test_a_commit_that_is_still_under_way_is_waited_for(proxied: Home, proxy: Proxy) -> None:
    proxy.break_commit(AtCommit.RACING)

    await says_once(proxied, "one")

    assert unknown(proxied) == {"committed": 1, "repeated": 0}


@pytest.mark.usefixtures("slow_commits")
async def test_planted_a_look_without_the_lock_is_found_by_the_next_batch(
    proxied: Home, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = cast("dict[str, Statement]", statements())
    unlocked = known["batch_mark"].text.replace(" FOR UPDATE", "")
    monkeypatch.setitem(known, "batch_mark", replace(known["batch_mark"], text=unlocked))
    proxy.break_commit(AtCommit.RACING)

    with pytest.raises(StoreFailed, match="went back"):
        await says_once(proxied, "one")
    assert len(proxied.rows().of("inbox", external_id="one")) == 1
    found_by("a lost commit is looked up without the lock", "several gateways", "cut", "went back")
