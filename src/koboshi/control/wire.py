"""Connections of the control socket, on plain sockets.

anyio's own streams for such sockets end a wait with `future.set_result`. On uvloop that fails if
the wait is cancelled and the socket becomes readable in the same pass of the loop: when a gateway
stops while a client comes or goes. `wait_readable` and `wait_writable` may end for both reasons.
"""

import socket

from anyio import (
    BrokenResourceError,
    DelimiterNotFound,
    IncompleteRead,
    wait_readable,
    wait_writable,
)
from anyio.lowlevel import checkpoint

CHUNK_BYTES = 65_536


async def accepted(listening: socket.socket) -> socket.socket:
    """The next connection. Raises OSError, such as for a lack of descriptors."""
    await checkpoint()
    while True:
        try:
            connection, _ = listening.accept()
        except BlockingIOError:
            await wait_readable(listening)
            continue
        connection.setblocking(False)
        return connection


async def line_from(connection: socket.socket, bytes_max: int) -> bytes:
    """The first line, without its end.

    Raises DelimiterNotFound if it is too long, IncompleteRead if the other side ends before it, and
    BrokenResourceError if the connection breaks."""
    received = b""
    while b"\n" not in received:
        if len(received) >= bytes_max:
            raise DelimiterNotFound(bytes_max)
        try:
            chunk = connection.recv(CHUNK_BYTES)
        except BlockingIOError:
            await wait_readable(connection)
            continue
        except OSError as error:
            raise BrokenResourceError from error
        if not chunk:
            raise IncompleteRead
        received += chunk
    return received.partition(b"\n")[0]


async def send_all(connection: socket.socket, content: bytes) -> None:
    """Raises BrokenResourceError if the connection breaks."""
    left = memoryview(content)
    while left:
        try:
            left = left[connection.send(left) :]
        except BlockingIOError:
            await wait_writable(connection)
        except OSError as error:
            raise BrokenResourceError from error
