"""A database that is not the one that a gateway wrote to, and a clock that all nodes share."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeAlias, cast

import pytest

from koboshi.domain.errors import StoreFailed
from koboshi.domain.witness import Witness
from koboshi.kernel import clocks
from koboshi.stores.postgres.going_back import ServerWitness, read_witness, write_witness
from koboshi.stores.postgres.store import PostgresStore
from tests.harness.fake_time import DAY_MS, FakeClock
from tests.harness.homes import Home
from tests.harness.postgres_backend import Database, PostgresBackend
from tests.harness.tally import found_by

Nodes: TypeAlias = tuple[Home, Home]


@pytest.fixture
async def nodes(database: Database, tmp_path: Path) -> AsyncIterator[Nodes]:
    """Two homes by the clock of one server."""
    clock = FakeClock()
    made = tuple(
        Home(backend=PostgresBackend(tmp_path / name, database=database), clock=clock)
        for name in ("a", "b")
    )
    for node in made:
        await node.boot()
    yield cast("Nodes", made)
    for node in made:
        await node.store.close()


async def beat(home: Home) -> None:
    await home.store.workers.beat(home.worker.worker_id)


async def owe(home: Home, text: str = "hello") -> None:
    await home.answer(await home.work_on(text))


def age_ms(home: Home) -> int:
    (row,) = home.rows().outbox
    aged_from_ms = row["aged_from_ms"]
    assert isinstance(aged_from_ms, int)
    return home.clock.now_ms() - aged_from_ms


def warnings(home: Home) -> tuple[str, ...]:
    assert isinstance(home.store, PostgresStore)
    return home.store.warnings


def states(home: Home) -> list[object]:
    return [row["state"] for row in home.rows().outbox]


# ── the clock of the server ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("jump_ms", [-DAY_MS, DAY_MS])
async def test_a_jump_is_made_good_though_the_oldest_boot_is_dead_and_not_buried(
    nodes: Nodes, jump_ms: int
) -> None:
    _, younger = nodes
    await owe(younger)
    younger.clock.wall_ms += jump_ms
    await beat(younger)

    assert age_ms(younger) == 0


@pytest.mark.parametrize("jump_ms", [-DAY_MS, DAY_MS])
async def test_a_jump_is_made_good_once_by_several_nodes(nodes: Nodes, jump_ms: int) -> None:
    here, there = nodes
    await owe(here)
    await beat(there)
    for _ in range(2):
        here.clock.wall_ms += jump_ms
        for node in (here, there, here, there):
            await beat(node)
            assert age_ms(here) == 0


async def test_a_boot_after_a_jump_that_others_have_yet_to_see_moves_nothing(
    nodes: Nodes, database: Database, tmp_path: Path
) -> None:
    here, _ = nodes
    await owe(here)
    here.clock.wall_ms += DAY_MS
    new = Home(backend=PostgresBackend(tmp_path / "new", database=database), clock=here.clock)
    await new.boot()
    await beat(new)
    await beat(here)
    await beat(new)

    assert age_ms(here) == 0
    await new.store.close()


async def test_planted_each_node_makes_a_jump_good_by_itself(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = nodes
    await owe(here)
    await beat(there)
    begin: Callable[..., None] = clocks.JumpWatch.begin

    def alone(watch: clocks.JumpWatch, tx: object) -> None:
        watch._left = lambda _, jump_ms: jump_ms
        begin(watch, tx)

    monkeypatch.setattr(clocks.JumpWatch, "begin", alone)
    here.clock.wall_ms += DAY_MS
    for node in nodes:
        await beat(node)

    assert age_ms(here) == -DAY_MS
    found_by("each node moves the ages", "several gateways", "the clock jumps", "moved twice")


# ── a database that went back ───────────────────────────────────────────────────────────────────


async def test_a_lost_batch_is_found_though_no_commit_was_under_way(home: Home) -> None:
    await home.say("one")
    await home.say("two")
    home.sql(f"UPDATE workers SET batch = batch - 1 WHERE worker_id = {home.worker.worker_id}")

    with pytest.raises(StoreFailed, match="went back"):
        await home.say("three", key="three")
    assert not home.rows().of("inbox", external_id="three")


async def test_a_database_that_does_not_know_the_boot_went_back(home: Home) -> None:
    home.sql(
        "SET session_replication_role = replica",
        f"DELETE FROM workers WHERE worker_id = {home.worker.worker_id}",
        "SET session_replication_role = DEFAULT",
    )

    with pytest.raises(StoreFailed, match="went back"):
        await home.say("three")


async def on_another_server(home: Home, *, loses_none: bool = False) -> None:
    """The next start finds a standby in the place of the server."""
    await home.store.close()
    home.sql(f"UPDATE koboshi_schema SET server = '1/00000001', loses_none = {loses_none}")
    await home.boot()


async def test_a_start_on_a_promoted_standby_holds_all_owed_deliveries(home: Home) -> None:
    await owe(home)
    await on_another_server(home)

    assert states(home) == ["held"]
    assert any("gone back" in each for each in warnings(home))
    assert "gone back" in ((await home.store.views.status()).gap or "")


async def test_the_next_start_holds_nothing_anew(home: Home) -> None:
    await owe(home)
    await on_another_server(home)
    await home.store.outbox.release(None)
    await home.reopen()

    assert states(home) == ["owed"]
    assert [row["labelled"] for row in home.rows().outbox] == [1]


async def test_a_standby_that_was_waited_for_has_everything(home: Home) -> None:
    await owe(home)
    await on_another_server(home, loses_none=True)

    assert states(home) == ["owed"]


async def test_the_answer_to_a_turn_of_before_is_labelled(home: Home) -> None:
    """It may have been given in what is gone."""
    await home.say("hello")
    await on_another_server(home)
    await home.answer(await home.claim(), "an answer")
    home.clock.move(1)
    await owe(home, "later")

    assert [row["labelled"] for row in home.rows().outbox] == [1, 0]


async def test_a_start_whose_witness_saw_more_holds_all_owed_deliveries(
    database: Database, tmp_path: Path
) -> None:
    home = Home(backend=PostgresBackend(tmp_path / "home", database=database))
    await home.boot()
    await owe(home)
    await beat(home)
    told = read_witness(tmp_path / "home")
    assert told is not None
    assert told.seen.journal == home.rows().journal[-1]["seq"]
    await home.reopen()
    assert states(home) == ["owed"]

    seen = Witness(journal=told.seen.journal + 900, boot=1, birth="birth", at_ms=told.seen.at_ms)
    await home.store.close()
    write_witness(tmp_path / "home", ServerWitness(database_id=told.database_id, seen=seen))
    await home.boot()

    assert states(home) == ["held"]
    await home.store.close()


async def test_a_witness_of_another_database_says_nothing_here(
    database: Database, tmp_path: Path
) -> None:
    home = Home(backend=PostgresBackend(tmp_path / "home", database=database))
    seen = Witness(journal=900, boot=1, birth="birth", at_ms=1)
    write_witness(tmp_path / "home", ServerWitness(database_id="another", seen=seen))
    await home.boot()
    await owe(home)

    assert warnings(home) == ()
    await home.store.close()


async def test_processes_that_the_database_does_not_know_are_set_aside(
    database: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "home" / "processes" / "77"
    folder.mkdir(parents=True)
    home = Home(backend=PostgresBackend(tmp_path / "home", database=database))
    await home.boot()

    assert not folder.exists()
    assert [each.name for each in (tmp_path / "home" / "quarantine").glob("*/processes/*")] == [
        "77"
    ]
    await home.store.close()
