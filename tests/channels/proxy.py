"""A wire that can be cut: it stands between a client and a server and breaks where told to."""

import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from anyio import (
    BrokenResourceError,
    CancelScope,
    ClosedResourceError,
    EndOfStream,
    connect_tcp,
    create_task_group,
    create_tcp_listener,
)
from anyio.abc import SocketAttribute, SocketStream

BREAKS = (BrokenResourceError, ClosedResourceError, EndOfStream, OSError)
RESET = struct.pack("ii", 1, 0)


@dataclass
class Wire:
    """`limits` says after how many bytes from the server each next connection breaks; when there
    are no more, connections last. A `target` of None is a server that is not there."""

    port: int = 0
    target: int | None = None
    limits: list[int] = field(default_factory=list)
    connections: int = 0
    on_connect: Callable[[], object] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def carry(self, client: SocketStream) -> None:
        async with client:
            self.connections += 1
            self.on_connect()
            if self.target is None:
                return _reset(client)
            limit = self.limits.pop(0) if self.limits else None
            try:
                async with (
                    await connect_tcp("127.0.0.1", self.target) as server,
                    create_task_group() as tasks,
                ):
                    tasks.start_soon(_pump, client, server, None, tasks.cancel_scope)
                    tasks.start_soon(_pump, server, client, limit, tasks.cancel_scope)
            except BREAKS:
                _reset(client)


@asynccontextmanager
async def wire(target: int | None) -> AsyncIterator[Wire]:
    async with (
        await create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener,
        create_task_group() as tasks,
    ):
        laid = Wire(port=listener.extra(SocketAttribute.local_port), target=target)
        tasks.start_soon(listener.serve, laid.carry)
        yield laid
        tasks.cancel_scope.cancel()


async def _pump(
    source: SocketStream, sink: SocketStream, limit: int | None, scope: CancelScope
) -> None:
    """Carry bytes until one side ends, or break off in the middle of them."""
    carried = 0
    try:
        while True:
            piece = await source.receive()
            room = len(piece) if limit is None else max(limit - carried, 0)
            await sink.send(piece[:room])
            carried += len(piece)
            if room < len(piece):
                _reset(sink)
                break
    except BREAKS:
        pass
    scope.cancel()


def _reset(stream: SocketStream) -> None:
    """Close without a goodbye, as a killed process or a pulled plug does."""
    raw = stream.extra(SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
