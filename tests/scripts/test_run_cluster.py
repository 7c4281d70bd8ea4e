"""`make run-cluster` shows a failover: its page is always there, and the answer comes once."""

import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from anyio import create_task_group

from tests.harness.client import Client
from tests.harness.polling import until
from tests.harness.ports import free_port
from tests.harness.postgres import NoPostgres, programs_of_postgres, refuse_or_skip

pytestmark = [pytest.mark.crash, pytest.mark.slow]

ROOT = Path(__file__).resolve().parent.parent.parent
WORKS = (
    "SELECT w.node FROM turns AS t JOIN workers AS w ON w.worker_id = t.worker_id "
    "WHERE t.state = 'running'"
)


@dataclass(frozen=True, slots=True)
class Page:
    address: str
    token: str
    home: Path
    folder: Path
    pids: dict[str, int]

    def rows(self, query: str) -> list[tuple[object, ...]]:
        (server,) = (self.folder / "db").iterdir()
        with psycopg.connect(host=str(server), user="koboshi", dbname="postgres") as past:
            return past.execute(query.encode()).fetchall()


@pytest.fixture
def page() -> Iterator[Page]:
    try:
        programs_of_postgres()
    except NoPostgres as error:
        refuse_or_skip(str(error))
    port, token = free_port(), secrets.token_urlsafe(32)
    command = [sys.executable, "-m", "scripts.run_cluster", "--port", str(port), f"--token={token}"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as cluster:
        assert cluster.stdout is not None
        said = ""
        for line in cluster.stdout:
            said += line
            if line.startswith("Ctrl-C"):
                break
        folder = Path(re.findall(r"^folder +(.+)$", said, re.MULTILINE)[0])
        assert f"http://127.0.0.1:{port}/" in said, said
        found = re.findall(r"^gateway +(\w+): kill -9 (\d+)$", said, re.MULTILINE)
        pids = {name: int(pid) for name, pid in found}
        yield Page(f"http://127.0.0.1:{port}", token, folder / "a", folder, pids)
        cluster.send_signal(signal.SIGINT)
        cluster.stdout.read()
    assert cluster.returncode == 0
    assert not folder.exists()


async def test_the_turn_of_a_killed_gateway_is_answered_on_the_same_page_once(page: Page) -> None:
    person = Client(page, "ann")
    async with create_task_group() as tasks:
        tasks.start_soon(person.keep_following)
        await person.say("count to 5 slowly", "one")
        (node,) = (await until(lambda: page.rows(WORKS), "a node works on it"))[0]
        os.kill(page.pids[str(node)], signal.SIGKILL)
        await person.sees(lambda event: event.kind == "answer", "the answer")
        await until(
            lambda: page.rows("SELECT 1 FROM turns WHERE state = 'done'"), "the turn is done"
        )
        tasks.cancel_scope.cancel()
    assert len(person.answered()) == 1
    assert page.rows("SELECT count(*) FROM outbox WHERE state = 'delivered'") == [(1,)]
