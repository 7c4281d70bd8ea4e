"""Two nodes on one database: what one decides, the other has not changed meanwhile."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, cast

import psycopg
import pytest
from anyio import create_task_group, to_thread

from koboshi.domain.errors import Buried
from koboshi.domain.turn import Claim
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.translate import Statement
from koboshi.stores.postgres.wire import ServerError
from tests.harness.homes import Home
from tests.harness.named_keys import NOT_NAMED
from tests.harness.polling import until
from tests.harness.postgres_backend import Database, PostgresBackend
from tests.harness.tally import WANTS_ALL, found_by

Nodes: TypeAlias = tuple[Home, Home]
ROUNDS = 400 if WANTS_ALL else 40


@pytest.fixture
async def nodes(database: Database, tmp_path: Path) -> AsyncIterator[Nodes]:
    made = tuple(
        Home(backend=PostgresBackend(tmp_path / name, database=database)) for name in ("a", "b")
    )
    for node in made:
        await node.boot()
    yield cast("Nodes", made)
    for node in made:
        await node.store.close()


async def test_a_message_that_meets_an_answer_is_never_left_behind(nodes: Nodes) -> None:
    """The one closes the turn while the other stores a message behind it: either the answer opens
    the next turn, or the message does."""
    here, there = nodes
    claim = await here.work_on("first")
    for number in range(ROUNDS):
        async with create_task_group() as tasks:
            tasks.start_soon(here.answer, claim, f"answer {number}")
            say = partial(there.say, f"message {number}", key=f"message-{number}")
            tasks.start_soon(say)

        claims = (*await here.claims(), *await there.claims())
        assert len(claims) == 1, f"round {number}: {here.rows().of('inbox', state='waiting')}"
        claim = claims[0]
        if claim.worker_id == there.worker.worker_id:
            here, there = there, here


async def test_a_turn_is_claimed_by_one_node(nodes: Nodes) -> None:
    for number in range(12):
        await nodes[number % 2].say("hello", chat=f"chat-{number}", key=f"message-{number}")
    taken: list[Claim] = []

    async def claim(node: Home) -> None:
        taken.extend(await node.claims())

    async with create_task_group() as tasks:
        for node in nodes:
            tasks.start_soon(claim, node)
    for node in nodes:
        taken.extend(await node.claims())

    assert sorted(each.turn_id for each in taken) == sorted({each.turn_id for each in taken})
    assert len(taken) == 12


async def test_what_a_buried_node_worked_on_goes_on_at_another(nodes: Nodes) -> None:
    dead, living = nodes
    claim = await dead.work_on("hello")
    dead.sql(
        f"UPDATE workers SET ended_ms = heartbeat_ms, ended_how = 'killed' "
        f"WHERE worker_id = {dead.worker.worker_id}"
    )

    with pytest.raises(Buried):
        await dead.answer(claim, "from the grave")

    assert await living.store.turns.unowned(with_suspended=False) == (claim.turn_id,)
    await living.recover(claim.turn_id)
    await living.wait_until_due()
    await living.answer(await living.claim(), "an answer")
    assert [each.text for each in await living.deliver()] == ["an answer"]


async def test_a_worker_inside_a_batch_is_not_buried(nodes: Nodes, database: Database) -> None:
    """Its batch is committed, and then it lives; or the server ends it."""
    here, there = nodes
    (sign,) = await there.store.workers.others(there.worker.worker_id)
    assert sign.worker_id == here.worker.worker_id
    with psycopg.connect(database.url) as batch:
        batch.execute("SELECT beat(%s, %s, 1)", (sign.worker_id, sign.batch + 1))
        assert not await there.store.workers.bury(sign)
    assert not await there.store.workers.bury(sign), "the batch was a sign of life"


async def test_nothing_is_written_after_a_burial(nodes: Nodes, database: Database) -> None:
    """The burial waits for the batch that is under way, and no later one passes."""
    dying, _ = nodes
    counted: list[tuple[object, ...] | None] = []

    async def write_on() -> None:
        for number in range(10_000):
            await dying.say("hello", chat=f"chat-{number % 7}", key=f"key-{number}")

    def bury() -> None:
        with psycopg.connect(database.url) as burier:
            burier.execute(
                "UPDATE workers SET ended_ms = 1, ended_how = 'killed' WHERE worker_id = %s",
                (dying.worker.worker_id,),
            )
            counted.append(burier.execute("SELECT count(*) FROM inbox").fetchone())

    async def write_until_buried() -> None:
        with pytest.raises(Buried):
            await write_on()

    async with create_task_group() as tasks:
        tasks.start_soon(write_until_buried)
        await until(lambda: len(dying.rows().inbox) >= 5, "some messages are stored")
        await to_thread.run_sync(bury)

    assert counted == [(len(dying.rows().inbox),)]


async def test_planted_a_store_that_takes_no_keys_is_found(
    nodes: Nodes, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = cast("dict[str, Statement]", statements())
    nothing = replace(known["keys_take"], text="SELECT 1 FROM json_each($1::text)")
    always = replace(known["key_try"], text="SELECT $1::text <> ''")
    await nodes[0].say("hello")
    for node in nodes:
        await node.store.close()
    database.close()
    monkeypatch.setitem(known, "keys_take", nothing)
    monkeypatch.setitem(known, "key_try", always)
    await nodes[0].open()

    with pytest.raises(ServerError, match=NOT_NAMED):
        await nodes[0].say("hello")
    await nodes[0].store.close()
    database.close()
    found_by("no key is taken", "several gateways", "a message", NOT_NAMED)
