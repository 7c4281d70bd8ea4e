"""How connections come in: one after the other, and none while there is no room.

Room is made by ending connections on which no whole request has come, the oldest first: of a peer
that has its share already, or of any peer when all are taken. So a program that begins requests and
never ends them delays itself, and no other client.

The event loop has servers of its own. While the process has no descriptors left, they drop
connections, or try again without a pause, and say nothing about it.
"""

import asyncio
import socket
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial

import anyio.lowlevel
import structlog
from anyio import sleep

from koboshi.domain.resource_exhaustion import shortage_in

log = structlog.get_logger()

AGAIN_S = 1.0
"""How long a connection waits in the queue of the system before accept is tried again."""
ROOM_S = 0.1


class Arriving(asyncio.Protocol):
    """A connection that can say whether a request is under way on it."""

    @property
    @abstractmethod
    def is_arriving(self) -> bool: ...

    @abstractmethod
    def make_way(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class Acceptor:
    """`trouble` says why no connection is accepted now."""

    protocol: Callable[[], "Arriving"]
    inside: Collection[object]
    inside_max: int
    peer_max: int
    """Connections of one address."""
    trouble: str | None = None
    _peers: dict["Arriving", str] = field(default_factory=dict)
    """Whom each connection is with, in the order in which they came."""

    async def keep_open(self, listener: socket.socket) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            while len(self.inside) >= self.inside_max:
                if self._make_room(self._peers):
                    await anyio.lowlevel.checkpoint()
                    continue
                await self._wait(f"{self.inside_max} connections are open already", ROOM_S)
            try:
                connection, address = await loop.sock_accept(listener)
                self._has_room()
                peer, coming = str(address[0]), self.protocol()
                self._note(peer, coming)
                await loop.connect_accepted_socket(partial(_itself, coming), connection)
            except ConnectionError:
                continue  # they have left before they came in
            except OSError as error:
                missing = shortage_in(error)
                if missing is None:
                    raise
                await self._wait(missing, AGAIN_S)

    def _note(self, peer: str, coming: "Arriving") -> None:
        """Remember whom a connection is with, and keep the peer to its share."""
        if len(self._peers) > 2 * len(self.inside) + 64:
            self._peers = {
                each: whose for each, whose in self._peers.items() if each in self.inside
            }
        self._peers[coming] = peer
        theirs = [each for each, whose in self._peers.items() if whose == peer]
        if len(theirs) > self.peer_max:
            theirs = [each for each in theirs if each in self.inside]
            if len(theirs) >= self.peer_max:
                self._make_room(theirs)

    def _make_room(self, among: Iterable["Arriving"]) -> bool:
        """End the oldest connection that waits for the rest of a request. False if none does."""
        inside = (each for each in among if each in self.inside)
        oldest = next((each for each in inside if each.is_arriving), None)
        if oldest is None:
            return False
        del self._peers[oldest]
        oldest.make_way()
        return True

    async def _wait(self, why: str, seconds: float) -> None:
        if self.trouble is None:
            log.warning("connections_wait", reason=why)
        self.trouble = why
        await sleep(seconds)

    def _has_room(self) -> None:
        if self.trouble is not None:
            log.info("connections_come", after=self.trouble)
        self.trouble = None


def _itself(coming: Arriving) -> Arriving:
    return coming
