"""Our store on PostgreSQL: beside the one on SQLite, beside DBOS on the same server, on two nodes,
and on a server that is half a millisecond away."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.engines import OURS, Engine, Timing, run_engine
from benchmarks.peers.environment import peers_python
from benchmarks.place import ROOT, BenchmarkFailed, fresh_file, say
from benchmarks.report import Measure, Target, at_least, at_most, carry_out
from benchmarks.steady import Measured

CLIENTS = (1, 8, 64, 512)
COMPARED = 64
ROUND_TRIP_MS = 0.5
SLOWER_MAX, DBOS_MIN, NODES_MIN, FAR_MAX = 3.0, 8.0, 1.6, 1.25
SETTINGS = {
    # As a server comes, which flushes; but for a socket instead of a port.
    "listen_addresses": "",
    "max_connections": "60",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
}


def measure_postgres(folder: Path, timing: Timing) -> list[Measure]:
    with _server(folder) as server:
        bench = _Bench(folder, server, timing)
        parts = {
            "beside SQLite": bench.beside_sqlite,
            "beside DBOS": bench.beside_dbos,
            "two nodes": bench.two_nodes,
            "far away": bench.far_away,
        }
        return [
            measure
            for name, part in parts.items()
            for measure in carry_out(f"PostgreSQL, {name}", part)
        ]


class _Server:
    def __init__(self, folder: Path, socket: Path) -> None:
        self.folder = folder
        self.socket = socket
        self._made = 0

    def url(self, database: str = "postgres", host: str = "", port: int = 5432) -> str:
        return f"postgresql://koboshi@/{database}?host={host or self.folder}&port={port}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """The name of a new database, removed afterwards."""
        import psycopg

        self._made += 1
        name = f"bench_{self._made}"
        with psycopg.connect(self.url(), autocommit=True) as past:
            past.execute(f"CREATE DATABASE {name}".encode())
            yield name
            past.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def _server(folder: Path) -> Iterator[_Server]:
    from tests.harness.postgres import NoPostgres, a_cluster

    # The user of the server must reach it, and the name of its socket must be short.
    parent = Path(tempfile.mkdtemp(prefix="koboshi-bench-", dir="/var/tmp"))
    parent.chmod(0o755)
    if os.stat(parent).st_dev != os.stat(folder).st_dev:
        say("the server's disk is another one than that of --dir")
    try:
        cluster = a_cluster(parent, SETTINGS)
    except NoPostgres as error:
        parent.rmdir()
        raise BenchmarkFailed(f"PostgreSQL: {error}") from error
    try:
        yield _Server(cluster.folder, cluster.socket)
    finally:
        cluster.remove()
        parent.rmdir()


class _Bench:
    def __init__(self, folder: Path, server: _Server, timing: Timing) -> None:
        self._folder = folder
        self._server = server
        self._timing = timing

    def beside_sqlite(self) -> list[Measure]:
        here: dict[int, list[Measured]] = {clients: [] for clients in CLIENTS}
        there: dict[int, list[Measured]] = {clients: [] for clients in CLIENTS}
        for number in self._rounds("beside SQLite"):
            for clients in CLIENTS:
                # Neither is always the one that runs first.
                for on_server in (True, False) if number % 2 else (False, True):
                    runs = there if on_server else here
                    runs[clients].append(self._ours(clients, on_server=on_server))
        measures = []
        for clients in CLIENTS:
            name = f"{clients} session{'s' if clients > 1 else ''}"
            measures.append(_speed(f"PostgreSQL: turns/s, {name}", there[clients]))
            measures.append(
                _ratio(
                    f"SQLite / PostgreSQL, {name}",
                    here[clients],
                    there[clients],
                    at_most(SLOWER_MAX),
                )
            )
        return measures

    def beside_dbos(self) -> list[Measure]:
        dbos = Engine(name="DBOS", module="benchmarks.peers.dbos_turns", python=peers_python())
        ours: list[Measured] = []
        theirs: list[Measured] = []
        for _ in self._rounds("beside DBOS"):
            ours.append(self._ours(COMPARED, on_server=True))
            theirs.append(self._on_server(dbos, COMPARED))
        return [
            _speed(f"DBOS on PostgreSQL: turns/s, {COMPARED} sessions", theirs),
            _ratio(
                f"koboshi / DBOS on PostgreSQL, {COMPARED} sessions",
                ours,
                theirs,
                at_least(DBOS_MIN),
            ),
        ]

    def two_nodes(self) -> list[Measure]:
        cores = os.cpu_count() or 1
        together: list[float] = []
        for _ in self._rounds("two nodes"):
            alone = self._ours(COMPARED, on_server=True)
            with self._server.database() as name, ThreadPoolExecutor(2) as pool:
                url = self._server.url(name)
                # The tables are made before both ask for them.
                self._engine(OURS, replace(self._timing, warm_seconds=0, seconds=0.2), 1, url)
                nodes = [
                    pool.submit(self._engine, OURS, self._timing, COMPARED, url) for _ in range(2)
                ]
                both = sum(each.result().turns_per_second for each in nodes)
            together.append(both / alone.turns_per_second)
        # Two nodes and a server share the cores: with fewer than four, nothing is left to win.
        target = at_least(NODES_MIN) if cores >= 4 else None
        name = f"two nodes / one, {COMPARED} sessions each, {cores} cores"
        return [Measure(name=name, unit="x", values=tuple(together), target=target)]

    def far_away(self) -> list[Measure]:
        near: list[Measured] = []
        far: list[Measured] = []
        with self._slow_link() as port:
            for _ in self._rounds("half a millisecond away"):
                near.append(self._ours(COMPARED, on_server=True))
                with self._server.database() as name:
                    url = self._server.url(name, "127.0.0.1", port)
                    far.append(self._engine(OURS, self._timing, COMPARED, url))
        name = f"near / {ROUND_TRIP_MS} ms away, {COMPARED} sessions"
        return [_ratio(name, near, far, at_most(FAR_MAX))]

    @contextmanager
    def _slow_link(self) -> Iterator[int]:
        """The port of a proxy that is another process, as another machine would be."""
        command = [sys.executable, "-m", "benchmarks.slow_link", "--server"]
        command += [str(self._server.socket), "--round-trip-ms", str(ROUND_TRIP_MS)]
        link = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            assert link.stdout is not None
            yield int(link.stdout.readline())
        finally:
            link.kill()
            link.wait()

    def _rounds(self, what: str) -> Iterator[int]:
        for number in range(self._timing.rounds):
            say(f"postgres, {what}: round {number + 1} of {self._timing.rounds}")
            yield number

    def _ours(self, clients: int, *, on_server: bool) -> Measured:
        if on_server:
            return self._on_server(OURS, clients)
        return self._engine(OURS, self._timing, clients)

    def _on_server(self, engine: Engine, clients: int) -> Measured:
        with self._server.database() as name:
            return self._engine(engine, self._timing, clients, self._server.url(name))

    def _engine(self, engine: Engine, timing: Timing, clients: int, url: str = "") -> Measured:
        with fresh_file(self._folder) as file:
            return run_engine(engine, file, timing, clients, *(("--url", url) if url else ()))


def _speed(name: str, runs: list[Measured]) -> Measure:
    return Measure(name=name, unit="", values=tuple(run.turns_per_second for run in runs))


def _ratio(name: str, first: list[Measured], second: list[Measured], target: Target) -> Measure:
    pairs = zip(first, second, strict=True)
    values = tuple(one.turns_per_second / other.turns_per_second for one, other in pairs)
    return Measure(name=name, unit="x", values=values, target=target)
