"""A real gateway on PostgreSQL: it answers, is killed, and goes on where it was."""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from anyio import create_task_group

from tests.harness.client import Client
from tests.harness.homes import Home
from tests.harness.polling import until
from tests.harness.postgres_backend import Database, PostgresBackend
from tests.harness.process import KILLED, GatewayProcess, koboshi
from tests.harness.tally import WANTS_ALL

pytestmark = pytest.mark.crash

UNSAFE = ("--accept-data-loss",)
"""The server of the tests does not flush."""
POINTS = ["inbox.accept:after", "turns.answer:before", "batch:open:7", "commit:sent:7"]
MORE_POINTS = [
    "inbox.accept:before",
    "outbox.settle:before",
    "turns.claim:after",
    "turns.answer:after",
    "workers.start:after",
]


@pytest.fixture
async def gateway(database: Database, tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    # The tables are there, with the trigger that refuses writes without their keys.
    home = Home(backend=PostgresBackend(tmp_path / "first", database=database))
    await home.open()
    await home.store.close()
    made = GatewayProcess(tmp_path / "home", env={"KOBOSHI__STORE__URL": address_of(database)})
    yield made
    made.bury()


def address_of(database: Database) -> str:
    place = dict(part.split("=", 1) for part in database.url.split())
    return f"postgresql://{place['user']}@/{place['dbname']}?host={place['host']}"


@pytest.mark.parametrize("point", POINTS + MORE_POINTS * WANTS_ALL)
async def test_a_killed_gateway_answers_once(
    gateway: GatewayProcess, database: Database, point: str
) -> None:
    gateway.start(crash_at=point, arguments=UNSAFE)
    person = Client(gateway, "ann")
    async with create_task_group() as tasks:
        tasks.start_soon(person.keep_following)
        tasks.start_soon(person.say, "hello there", "one")
        assert await gateway.wait_exit() == KILLED
        gateway.start(arguments=UNSAFE)
        await person.sees(lambda event: event.kind == "answer", "an answer")
        await until(
            lambda: database.past.execute("SELECT 1 FROM turns WHERE state = 'done'").fetchall(),
            "the turn is done",
        )
        tasks.cancel_scope.cancel()

    assert len(person.answered()) == 1
    counts = database.past.execute(
        "SELECT (SELECT count(*) FROM inbox), (SELECT count(*) FROM steps WHERE kind = 'answer'), "
        "(SELECT count(*) FROM outbox WHERE state = 'delivered' AND labelled = 0)"
    )
    assert counts.fetchone() == (1, 1, 1)


async def test_a_stopped_gateway_can_be_asked(gateway: GatewayProcess, database: Database) -> None:
    gateway.start(arguments=UNSAFE)
    person = Client(gateway, "ann")
    await person.say("hello there", "one")
    await until(
        lambda: database.past.execute("SELECT 1 FROM turns WHERE state = 'done'").fetchall(),
        "the turn is done",
    )
    gateway.terminate()
    assert await gateway.wait_exit() == 0

    environment = {"KOBOSHI__STORE__URL": address_of(database), "PATH": "/usr/bin:/bin"}
    asked = [str(koboshi()), "explain", "t1", "--home", str(gateway.home)]
    told = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert "hello there" in told.stdout
