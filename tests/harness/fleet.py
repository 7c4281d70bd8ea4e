"""Several real gateways on one database, each with a home, a name and a way to the server of its
own, which the test can break."""

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from koboshi.domain.ids import TurnId
from tests.harness.moved_clock import Wall
from tests.harness.polling import until
from tests.harness.postgres import server_socket
from tests.harness.postgres_backend import Database
from tests.harness.process import GatewayProcess
from tests.harness.proxy import Proxy

UNSAFE = ("--accept-data-loss",)
"""The server of the tests does not flush."""
LEASE_S = 3.0
TOKEN = "the-token-of-all-nodes-of-the-tests-0123456789"
LOADS = ("psycopg", "greenlet")


def address_of(database: Database, host: Path | None = None) -> str:
    place = dict(part.split("=", 1) for part in database.url.split())
    folder = place["host"] if host is None else str(host)
    return f"postgresql://{place['user']}@/{place['dbname']}?host={folder}"


@dataclass(slots=True)
class Node:
    """One gateway, and what stands between it and the server."""

    name: str
    gateway: GatewayProcess
    proxy: Proxy
    wall: Wall | None = None
    """Its own clock, where the test moves that."""

    def start(self, crash_at: str = "") -> None:
        self.gateway.start(crash_at=crash_at, arguments=UNSAFE)

    def stop_still(self) -> None:
        """Stand still at any instruction."""
        os.kill(self.gateway.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.gateway.pid, signal.SIGCONT)


@dataclass(slots=True)
class Fleet:
    database: Database
    nodes: dict[str, Node] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        return self._ask(query, *values).fetchall()

    def change(self, statement: str) -> None:
        """Run a statement that gives nothing back."""
        self._ask(statement)

    def _ask(self, query: str, *values: object) -> "psycopg.Cursor[tuple[object, ...]]":
        while True:
            try:
                return self.database.past.execute(query.encode(), values)
            except psycopg.OperationalError:  # the server was killed under us, and comes back
                with suppress(psycopg.OperationalError):
                    self.database.past.close()
                threading.Event().wait(0.05)

    def number(self, query: str, *values: object) -> int:
        ((found,),) = self.rows(query, *values)
        assert isinstance(found, int), found
        return found

    @property
    def log(self) -> str:
        """What the nodes have said last."""
        said = (f"{name}:\n{node.gateway.log[-3000:]}" for name, node in self.nodes.items())
        return "\n\n".join(said)

    async def ready(self, *names: str) -> None:
        for name in names or self.nodes:
            await self.nodes[name].gateway.wait_ready()

    async def node_of(self, turn_id: int = 1) -> Node:
        """The node that works on a turn, once one does."""
        query = "SELECT node FROM turns JOIN workers USING (worker_id) WHERE turn_id = %s"

        def look() -> str | None:
            found = self.rows(query, turn_id)
            return str(found[0][0]) if found else None

        return self.nodes[await until(look, "a node works on the turn", otherwise=lambda: self.log)]

    async def comes_to_rest(self) -> None:
        await until(self._is_at_rest, "nothing is owed and no turn runs", otherwise=self.told)

    def _is_at_rest(self) -> bool:
        return not self.number(
            "SELECT (SELECT count(*) FROM turns WHERE closed_ms IS NULL) "
            "+ (SELECT count(*) FROM outbox WHERE settled_ms IS NULL) "
            "+ (SELECT count(*) FROM inbox WHERE state = 'waiting')"
        )

    def told(self) -> str:
        turns = self.rows("SELECT turn_id, state, event, rule, worker_id FROM turns ORDER BY 1")
        outbox = self.rows("SELECT delivery_id, state, reason, worker_id FROM outbox ORDER BY 1")
        workers = self.rows("SELECT worker_id, node, ended_ms, ended_how FROM workers ORDER BY 1")
        return f"{turns}\n{outbox}\n{workers}\n{self.log}"

    def taken_over_after_s(self, turn_id: TurnId | int = 1) -> float:
        """From the last sign of life of the first worker of a turn to the claim of the second."""
        claims = self.rows(
            "SELECT at_ms, worker_id FROM journal WHERE subject = 'turn' AND event = 'claimed' "
            "AND turn_id = %s ORDER BY seq",
            turn_id,
        )
        (_, first), (claimed_ms, second) = claims[0], claims[1]
        assert first != second, "the same worker claimed it again"
        died_ms = self.number("SELECT ended_ms FROM workers WHERE worker_id = %s", first)
        assert isinstance(claimed_ms, int)
        return (claimed_ms - died_ms) / 1_000

    def written_after_burial(self) -> list[tuple[object, ...]]:
        """Lines of the journal that a worker wrote after its end."""
        return self.rows(
            "SELECT j.seq, j.subject, j.event, j.worker_id FROM journal AS j "
            "JOIN journal AS e ON e.subject = 'worker' AND e.event = 'ended' "
            "AND e.worker_id = j.worker_id AND e.reason = 'killed' "
            "WHERE j.seq > e.seq AND (j.subject = 'message' AND j.event = 'accepted' "
            "OR j.subject = 'turn' AND j.event = 'claimed')"
        )


@contextmanager
def a_fleet(
    folder: Path,
    database: Database,
    *names: str,
    server: Path | None = None,
    lease_s: float = LEASE_S,
    env: Mapping[str, str] | None = None,
    has_walls: bool = False,
) -> Iterator[Fleet]:
    """Nodes of these names; none is started yet. With `has_walls`, each has a clock of its own that
    can be moved."""
    # The name of a socket must be short, and the folder of a test is not.
    short = Path(tempfile.mkdtemp(prefix="kf-", dir="/tmp"))
    fleet = Fleet(database)
    for name in names:
        (short / name).mkdir()
        proxy = Proxy(server or server_socket(), short / name)
        home = folder / name
        home.mkdir(mode=0o700, parents=True)
        (home / "web-token").write_text(TOKEN)
        (home / "web-token").chmod(0o600)
        settings = {
            "KOBOSHI__STORE__URL": address_of(database, proxy.folder),
            "KOBOSHI__STORE__LEASE_SECONDS": f"{lease_s:g}",
            "KOBOSHI__GATEWAY__NODE": name,
            **(env or {}),
        }
        wall = Wall(short / f"{name}.clock") if has_walls else None
        command = () if wall is None else (*wall.command, "run", "--home", str(home))
        gateway = GatewayProcess(home, env=settings, command=command, loads=LOADS)
        fleet.nodes[name] = Node(name, gateway, proxy, wall)
    try:
        yield fleet
    finally:
        for node in fleet.nodes.values():
            node.go_on()
            node.gateway.bury()
            node.proxy.close()
        shutil.rmtree(short)


@dataclass(slots=True)
class AnyNode:
    """Where a client finds a gateway: at the first of these that listens."""

    nodes: list[Node]

    @property
    def address(self) -> str | None:
        return next(filter(None, (node.gateway.address for node in self.nodes)), None)

    @property
    def token(self) -> str:
        return TOKEN

    @property
    def home(self) -> Path:
        return self.nodes[0].gateway.home
