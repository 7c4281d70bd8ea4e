"""A TCP proxy that makes a server on this machine look as if it were further away: what arrives is
passed on a fixed time later, in both directions."""

import argparse
import select
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

BYTES = 1 << 16


class SlowLink:
    """Listens on loopback and passes everything on to a socket, `seconds` later each way."""

    def __init__(self, server: Path, seconds: float) -> None:
        self._server = server
        self._seconds = seconds
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def serve(self) -> None:
        while True:
            inner, _ = self._listener.accept()
            inner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            outer = socket.socket(socket.AF_UNIX)
            outer.connect(str(self._server))
            _Way(inner, outer, self._seconds)
            _Way(outer, inner, self._seconds)


class _Way:
    """One direction of a connection."""

    def __init__(self, source: socket.socket, target: socket.socket, seconds: float) -> None:
        self._source = source
        self._target = target
        self._seconds = seconds
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._has_some = threading.Semaphore(0)
        for work in (self._take, self._give):
            threading.Thread(target=work, daemon=True).start()

    def _take(self) -> None:
        some = b"x"
        while some:
            try:
                some = self._source.recv(BYTES)
            except OSError:
                some = b""
            self._under_way.append((time.perf_counter() + self._seconds, some))
            self._has_some.release()

    def _give(self) -> None:
        while True:
            self._has_some.acquire()
            at, some = self._under_way.popleft()
            if (left := at - time.perf_counter()) > 0:
                select.select([], [], [], left)
            if not some:
                with suppress(OSError):
                    self._target.shutdown(socket.SHUT_WR)
                return
            try:
                self._target.sendall(some)
            except OSError:
                return


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--server", type=Path, required=True, help="the socket of the server")
    options.add_argument("--round-trip-ms", type=float, required=True)
    chosen = options.parse_args()
    link = SlowLink(chosen.server, chosen.round_trip_ms / 2_000)
    print(link.port, flush=True)
    link.serve()


if __name__ == "__main__":
    main()
