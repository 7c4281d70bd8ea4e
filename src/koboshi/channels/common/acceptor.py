"""How connections come in: one after the other, and nobody while there is no room.

The event loop has servers of its own. They drop whoever comes while the process has no descriptors
left, or try again without a pause, and say nothing about it.
"""

import asyncio
import socket
from collections.abc import Callable, Sized
from dataclasses import dataclass

import structlog
from anyio import sleep

from koboshi.domain.resource_exhaustion import shortage_in

log = structlog.get_logger()

AGAIN_S = 1.0
"""How long somebody waits in the queue of the system before they are tried for again."""
ROOM_S = 0.1


@dataclass(slots=True, kw_only=True)
class Acceptor:
    """`trouble` says why nobody can come in now."""

    protocol: Callable[[], asyncio.Protocol]
    inside: Sized
    inside_max: int
    trouble: str | None = None

    async def keep_open(self, listener: socket.socket) -> None:
        """Take in whoever comes, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            while len(self.inside) >= self.inside_max:
                await self._wait(f"{self.inside_max} connections are open already", ROOM_S)
            try:
                connection, _ = await loop.sock_accept(listener)
                self._has_room()
                await loop.connect_accepted_socket(self.protocol, connection)
            except ConnectionError:
                continue  # they have left before they came in
            except OSError as error:
                missing = shortage_in(error)
                if missing is None:
                    raise
                await self._wait(missing, AGAIN_S)

    async def _wait(self, why: str, seconds: float) -> None:
        if self.trouble is None:
            log.warning("connections_wait", reason=why)
        self.trouble = why
        await sleep(seconds)

    def _has_room(self) -> None:
        if self.trouble is not None:
            log.info("connections_come", after=self.trouble)
        self.trouble = None
