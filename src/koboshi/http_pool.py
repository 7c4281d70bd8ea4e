"""Connections to a server of others: each request has one to itself.

A pool looks at every connection that it has, with a system call for each, whenever a request begins
and whenever one ends. Here is one client for each request that is under way, with one connection;
whichever was used last is used next, so the rest come to rest and are closed.
"""

import ssl
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from urllib.request import getproxies

import anyio
import httpx2

from koboshi.http_wire import WireTransport, has_proxy

IDLE_SECONDS_MAX = 60.0
_ONE = httpx2.Limits(max_connections=1, max_keepalive_connections=1)


class HttpPool:
    """Clients of one connection each, made when they are needed, and at most `count_max`."""

    def __init__(
        self,
        *,
        count_max: int,
        timeout: httpx2.Timeout,
        follow_redirects: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        idle_seconds_max: float = IDLE_SECONDS_MAX,
    ) -> None:
        self._places = anyio.Semaphore(count_max, fast_acquire=True)
        self._timeout = timeout
        self._follow_redirects = follow_redirects
        self._transport = transport
        self._idle_seconds_max = idle_seconds_max
        self._trust: ssl.SSLContext | None = None if transport else certificates()
        # What goes by way of a proxy is left to the library.
        self._is_direct = transport is None and not has_proxy(getproxies())
        self._all: set[httpx2.AsyncClient] = set()
        self._idle: deque[tuple[httpx2.AsyncClient, float]] = deque()

    @asynccontextmanager
    async def lane(self) -> AsyncGenerator[httpx2.AsyncClient]:
        """A client for the caller alone. Waits while too many are in use."""
        async with self._places:
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
            timeout=self._timeout,
            limits=_ONE,
            follow_redirects=self._follow_redirects,
            transport=self._wire() or self._transport,
            verify=self._trust or True,
        )
        self._all.add(client)
        return client

    def _wire(self) -> WireTransport | None:
        return WireTransport(self._trust) if self._is_direct and self._trust else None

    async def _close_oldest(self) -> None:
        """One at a time is enough: no request opens more."""
        if self._idle and anyio.current_time() - self._idle[0][1] > self._idle_seconds_max:
            client, _ = self._idle.popleft()
            self._all.discard(client)
            await client.aclose()


@cache
def certificates() -> ssl.SSLContext:
    """Reading them takes a while, and all connections of this process share them."""
    trust = httpx2.create_ssl_context()
    trust.set_alpn_protocols(["http/1.1"])
    return trust
