"""`make run-cluster`: PostgreSQL and two gateways, in a folder that is removed, behind one page.

To see a failover: open the page, ask for something that takes a while, and kill the gateway that
works on it. The turn goes on at the other, and its answer arrives on the same page, once. The page
is reached through a small proxy of our own, which passes each connection on to a gateway that is
there.
"""

import argparse
import os
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.ports import free_port
from tests.harness.postgres import Cluster, NoPostgres, a_cluster

KOBOSHI = Path(sys.executable).with_name("koboshi")
NAMES = ("a", "b")
PAGE_PORT = 8640
LEASE_SECONDS = 5
BYTES = 1 << 16
START_SECONDS = 60.0
LOOK_SECONDS = 0.2
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "40",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
}
"""As a server comes, which flushes; but for a socket instead of a port."""
TRY_THIS = "count to 20 slowly"


@dataclass(slots=True)
class ClusterNode:
    """One gateway."""

    name: str
    home: Path
    port: int
    env: Mapping[str, str]
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        command = [str(KOBOSHI), "run", "--home", str(self.home), "--port", str(self.port)]
        with (self.home.parent / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stderr=log,
                stdout=log,
            )

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        if self.process is not None and self.is_alive:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
            if self.is_alive:
                self.process.kill()
                self.process.wait()

    def link(self) -> "socket.socket | None":
        """A connection to it; None if there is none."""
        if not self.is_alive:
            return None
        try:
            return socket.create_connection(("127.0.0.1", self.port), timeout=2)
        except OSError:
            return None


@dataclass(slots=True)
class OnePage:
    """Passes each connection on to the first gateway that takes it."""

    port: int
    nodes: list[ClusterNode]
    _listener: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            browser, _ = self._listener.accept()
            threading.Thread(target=self._carry, args=(browser,), daemon=True).start()

    def _carry(self, browser: socket.socket) -> None:
        gateway = next((link for node in self.nodes if (link := node.link()) is not None), None)
        with browser:
            if gateway is None:
                return
            with gateway, suppress(OSError):
                gateway.settimeout(None)
                _pass_on(browser, gateway)


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    """Until one of them ends."""
    ways = {one: other, other: one}
    while True:
        readable, _, _ = select.select([one, other], [], [])
        for source in readable:
            some = source.recv(BYTES)
            if not some:
                return
            ways[source].sendall(some)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=PAGE_PORT, help="of the page; 0 = any free")
    options.add_argument("--token", help="the secret of programs; a random one without it")
    chosen = options.parse_args()
    token = chosen.token or secrets.token_urlsafe(32)
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="koboshi-cluster-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            server = stack.enter_context(_database(folder))
        except NoPostgres as error:
            print(f"PostgreSQL is needed: {error}; as root, scripts/system_packages.sh installs it")
            return 1
        page_port = chosen.port or free_port()
        nodes = [_node(name, folder, server, page_port, token) for name in NAMES]
        for node in nodes:
            stack.callback(node.stop)
            node.start()
        OnePage(page_port, nodes)
        if not all(_comes_up(node) for node in nodes):
            print((folder / "a.log").read_text(errors="replace")[-2_000:])
            return 1
        _tell(nodes, page_port, folder)
        with suppress(KeyboardInterrupt):
            _look_after(nodes)
    return 0


@contextmanager
def _database(folder: Path) -> Iterator[Cluster]:
    parent = folder / "db"
    folder.chmod(0o711)
    parent.mkdir()
    parent.chmod(0o711)
    cluster = a_cluster(parent, SETTINGS)
    try:
        yield cluster
    finally:
        cluster.remove()


def _node(name: str, folder: Path, server: Cluster, page_port: int, token: str) -> ClusterNode:
    home = folder / name
    home.mkdir(mode=0o700)
    (folder / f"{name}-work").mkdir()
    env = {
        "KOBOSHI__STORE__URL": f"postgresql://koboshi@/postgres?host={server.folder}",
        "KOBOSHI__STORE__LEASE_SECONDS": str(LEASE_SECONDS),
        "KOBOSHI__GATEWAY__NODE": name,
        "KOBOSHI__GATEWAY__WORKDIR": str(folder / f"{name}-work"),
        "KOBOSHI__CHANNELS__WEB__MAIN__TOKEN": token,
        "KOBOSHI__CHANNELS__WEB__MAIN__PUBLIC_URL": f"http://127.0.0.1:{page_port}",
    }
    return ClusterNode(name, home, free_port(), env)


def _comes_up(node: ClusterNode) -> bool:
    waited = 0.0
    while node.is_alive and waited < START_SECONDS:
        if (link := node.link()) is not None:
            link.close()
            return True
        threading.Event().wait(LOOK_SECONDS)
        waited += LOOK_SECONDS
    return False


def _tell(nodes: list[ClusterNode], page_port: int, folder: Path) -> None:
    opened = subprocess.run(
        [str(KOBOSHI), "open", "--print", "--home", str(nodes[0].home)],
        env={**os.environ, **nodes[0].env},
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"page       {opened.stdout.strip() or f'http://127.0.0.1:{page_port}'}")
    print(f"folder     {folder}")
    print(f"ask for    {TRY_THIS}")
    for node in nodes:
        assert node.process is not None
        print(f"gateway    {node.name}: kill -9 {node.process.pid}")
    print("then watch the answer come from the other. A name and Enter starts a gateway again.")
    print("Ctrl-C ends everything.", flush=True)


def _look_after(nodes: list[ClusterNode]) -> None:
    """Say who has gone, and start whom a person names."""
    known = {node.name: True for node in nodes}
    waits_for = [sys.stdin]
    while True:
        for node in nodes:
            if known[node.name] and not node.is_alive:
                known[node.name] = False
                print(f"{node.name} is gone; `{node.name}` and Enter starts it again", flush=True)
        readable, _, _ = select.select(waits_for, [], [], LOOK_SECONDS)
        if not readable:
            continue
        line = sys.stdin.readline()
        if not line:
            waits_for = []
        for node in nodes:
            if line.strip() == node.name and not node.is_alive:
                node.start()
                known[node.name] = True
                assert node.process is not None
                print(f"gateway    {node.name}: kill -9 {node.process.pid}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
