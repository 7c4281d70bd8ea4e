"""The other end of the notify socket, as a service manager would hold it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.process import until


class Ear:
    """Hears what is sent to the socket, in order."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._lines: list[str] = []

    def heard(self) -> list[str]:
        """All lines so far."""
        while True:
            try:
                message = self._socket.recv(65_536)
            except BlockingIOError:
                return self._lines
            self._lines += message.decode().split("\n")

    def wait_for(self, line: str, times: int = 1) -> None:
        until(
            lambda: self.heard().count(line) >= times,
            f"the manager hears {line!r}",
            otherwise=lambda: repr(self._lines),
        )

    def close(self) -> None:
        self._socket.close()


@contextmanager
def ear(folder: Path, address: str = "") -> Iterator[Ear]:
    one = Ear(address or str(folder / "notify"))
    try:
        yield one
    finally:
        one.close()
