"""Issue 15: the port is never free while a gateway restarts, so no other program can take it."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.cli.process import (
    KOBOSHI,
    WITHIN_S,
    children,
    environment,
    gateway,
    koboshi,
    starting,
    until,
)

HANDED_AS_SYSTEMD_DOES = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "web.main"}
os.execv(sys.argv[2], sys.argv[2:])
"""


class Thief:
    """Tries to take the port, and to connect to it, as fast as it can."""

    def __init__(self, place: tuple[str, int]) -> None:
        self.place = place
        self.tries = self.taken = self.refused = 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._try, daemon=True)

    def _try(self) -> None:
        while not self.is_over.is_set():
            self.tries += 1
            with closing(socket.socket()) as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    other.bind(self.place)
                    other.listen()
                    self.taken += 1
                except OSError:
                    pass
            with closing(socket.socket()) as visitor:
                visitor.settimeout(WITHIN_S)
                try:
                    visitor.connect(self.place)
                except ConnectionRefusedError:
                    self.refused += 1
                except OSError:
                    pass


@contextmanager
def thief(place: tuple[str, int]) -> Iterator[Thief]:
    one = Thief(place)
    one.thread.start()
    try:
        yield one
    finally:
        one.is_over.set()
        one.thread.join(WITHIN_S)


def test_under_a_parent_a_killed_gateway_leaves_no_free_port(home: Path) -> None:
    """Port 0 is chosen once: the next life has the same one."""
    with gateway(home, "--supervise") as one:
        place = one.wait_serving()
        (child,) = until(lambda: children(one.pid), "the gateway lives")
        with thief(place) as other:
            os.kill(child, signal.SIGKILL)
            assert one.wait_serving(times=2) == place
            until(lambda: other.tries > 50, "it tried often")
        one.say("terminal", "echo hello")

    assert (other.taken, other.refused) == (0, 0)


def test_who_connects_between_two_lives_is_answered_by_the_next(home: Path) -> None:
    with gateway(home, "--supervise") as one:
        place = one.wait_serving()
        (child,) = until(lambda: children(one.pid), "the gateway lives")
        os.kill(child, signal.SIGKILL)
        with socket.create_connection(place, timeout=WITHIN_S) as early:
            early.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            one.wait_serving(times=2)
            answer = early.recv(65_536)

    # One that the dying gateway had accepted is cut off, and comes again.
    assert answer.startswith(b"HTTP/1.1 200") or answer == b""


def test_a_gateway_that_restarts_itself_keeps_its_port(home: Path) -> None:
    with gateway(home) as one:
        place = one.wait_serving()
        with thief(place) as other:
            assert koboshi("restart", home=home).code == 0
            assert one.wait_serving(times=2) == place

    assert (other.taken, other.refused) == (0, 0)


def test_a_service_manager_is_given_the_socket_and_gives_it_back(
    home: Path, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(WITHIN_S)
        with starting(home, NOTIFY_SOCKET=str(tmp_path / "notify")) as one:
            place = one.wait_serving()
            stored = 0
            while not stored:
                said, descriptors, _, _ = socket.recv_fds(manager, 4_096, 4)
                if b"FDSTORE=1" in said:
                    assert b"FDNAME=web.main" in said
                    (stored,) = descriptors
            one.kill()
    with socket.socket(fileno=stored) as kept, thief(place) as other:
        assert kept.getsockname() == place
        command = [sys.executable, "-c", HANDED_AS_SYSTEMD_DOES, str(stored), KOBOSHI, "run"]
        log = tmp_path / "log"
        with log.open("wb") as out:
            second = subprocess.Popen(
                command, env=environment(home), pass_fds=[stored], stdout=out, stderr=out
            )
        try:
            words = f"koboshi is at http://{place[0]}:{place[1]} "
            until(lambda: words in log.read_text(), "it serves there", otherwise=log.read_text)
        finally:
            second.terminate()
            second.wait(WITHIN_S)

    assert (other.taken, other.refused) == (0, 0)
