"""A proxy between a store and its server, by which a test makes the network fail: cut, stall, lose
one direction, or break exactly around a commit. It speaks to sockets of this machine only."""

import socket
import threading
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

SOCKET_NAME = ".s.PGSQL.5432"
_COMMIT = b"COMMIT\0"


class AtCommit(StrEnum):
    """Where the next commit breaks."""

    BEFORE = "before"
    """The server never hears of it."""
    AFTER = "after"
    """It is done, and its answer is lost."""
    RACING = "racing"
    """The connection is cut as soon as it is sent, and no answer to it comes through."""
    STALLED = "stalled"
    """It is held until the proxy flows again, and its batch stands still."""


class Proxy:
    """Listens in a folder as the server does in its own."""

    def __init__(self, server: Path, folder: Path) -> None:
        self._server = server
        self.folder = folder
        self._lock = threading.Lock()
        self._pairs: set[_Pair] = set()
        self._flows = threading.Event()
        self._flows.set()
        self._breaks: AtCommit | None = None
        self.broken = threading.Event()
        """Set when a commit was broken."""
        self.is_open = True
        self._is_deaf = False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET_NAME))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def break_commit(self, where: AtCommit) -> None:
        """The next commit that comes by breaks, once."""
        with self._lock:
            self._breaks = where
            self.broken.clear()

    def cut(self) -> None:
        """Every connection ends at once."""
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            pair.close()

    def lead_to(self, server: Path) -> None:
        """Another server is at the address from now on."""
        self._server = server
        self.cut()

    def stall(self) -> None:
        """Nothing comes through any more, and no connection ends."""
        self._flows.clear()

    def deafen(self) -> None:
        """What the client says comes through, and no answer does."""
        self._is_deaf = True

    def flow(self) -> None:
        self._flows.set()
        if self._is_deaf:
            # A piece of the answers is missing on each connection.
            self._is_deaf = False
            self.cut()

    def refuse(self) -> None:
        """No new connection is made, and those that are there end."""
        self.is_open = False
        self.cut()

    def accept(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False
        self._flows.set()
        # A thread that waits in `accept` is woken by nothing else.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self.is_open:
                near.close()
                continue
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(str(self._server))
            except OSError:
                near.close()
                far.close()
                continue
            pair = _Pair(near, far)
            with self._lock:
                self._pairs.add(pair)
            threading.Thread(target=self._pump_up, args=(pair,), daemon=True).start()
            threading.Thread(target=self._pump_down, args=(pair,), daemon=True).start()

    def _pump_up(self, pair: "_Pair") -> None:
        while data := _received(pair.near):
            self._flows.wait()
            breaks = self._taken(data)
            if breaks is AtCommit.BEFORE:
                break
            if breaks is AtCommit.STALLED:
                self._flows.wait()
            # Before it is sent: the server may answer sooner than the connection is cut.
            pair.loses_answers |= breaks in (AtCommit.AFTER, AtCommit.RACING)
            if not _sent(pair.far, data) or breaks is AtCommit.RACING:
                break
        self._end(pair)

    def _pump_down(self, pair: "_Pair") -> None:
        while data := _received(pair.far):
            self._flows.wait()
            if self._is_deaf:
                continue
            if pair.loses_answers or not _sent(pair.near, data):
                break
        self._end(pair)

    def _taken(self, data: bytes) -> AtCommit | None:
        with self._lock:
            if _COMMIT not in data or self._breaks is None:
                return None
            taken, self._breaks = self._breaks, None
            if taken is AtCommit.STALLED:
                self._flows.clear()
            self.broken.set()
            return taken

    def _end(self, pair: "_Pair") -> None:
        pair.close()
        with self._lock:
            self._pairs.discard(pair)


class _Pair:
    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.near = near
        self.far = far
        self.loses_answers = False

    def close(self) -> None:
        for each in (self.near, self.far):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(65_536)
    except OSError:
        return b""


def _sent(target: socket.socket, data: bytes) -> bool:
    try:
        target.sendall(data)
    except OSError:
        return False
    return True
