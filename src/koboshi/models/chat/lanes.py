"""The connections to a server: each request has one to itself.

A pool looks at every connection that it has, with a system call for each, whenever a request begins
and whenever one ends. Here is one client for each request that is under way, with one connection;
whichever was used last is used next, so the rest come to rest and are closed.
"""

import ssl
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx2

IDLE_MAX = 64
IDLE_SECONDS_MAX = 60
_ONE = httpx2.Limits(max_connections=1, max_keepalive_connections=1)


class Lanes:
    """Clients of one connection each, made when they are needed."""

    def __init__(self, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._transport = transport
        self._trust: ssl.SSLContext | bool = transport is None and httpx2.create_ssl_context()
        self._all: set[httpx2.AsyncClient] = set()
        self._idle: deque[tuple[httpx2.AsyncClient, float]] = deque()

    @asynccontextmanager
    async def lane(self) -> AsyncGenerator[httpx2.AsyncClient]:
        """A client that nobody else uses meanwhile."""
        client = self._idle.pop()[0] if self._idle else self._open()
        try:
            yield client
        finally:
            if client in self._all:
                self._idle.append((client, anyio.current_time()))
        await self._close_oldest()

    async def aclose(self) -> None:
        """Close all of them, also those that are in use."""
        lanes, self._all = self._all, set()
        self._idle.clear()
        for client in lanes:
            await client.aclose()

    def _open(self) -> httpx2.AsyncClient:
        client = httpx2.AsyncClient(
            limits=_ONE, follow_redirects=True, transport=self._transport, verify=self._trust
        )
        self._all.add(client)
        return client

    async def _close_oldest(self) -> None:
        """One at a time is enough: no request opens more."""
        if not self._idle:
            return
        client, since = self._idle[0]
        if len(self._idle) > IDLE_MAX or anyio.current_time() - since > IDLE_SECONDS_MAX:
            self._idle.popleft()
            self._all.discard(client)
            await client.aclose()
