"""A server that is there: its messages are HTTP requests and their responses.

The library does the talking. Here is what it leaves open: how much is taken in, and what became of
the request of one call.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from koboshi.tools.mcp.endpoint import Address, ServerLimits

CONNECT_SECONDS = 10.0
FAREWELL_SECONDS = 2.0

# The server, or what stands before it, turned the request away. Not among them: 408 and 409, which
# some send after they have begun.
_TURNED_AWAY = frozenset({400, 401, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 429, 431})
TOO_MANY = 429
"""Says nothing of the session, and asks for fewer requests."""
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.LocalProtocolError,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
)


@dataclass(slots=True)
class CallPosted:
    """What became of the request of one call. Unless it is told, that is unknown."""

    status: int | None = None
    is_answer: bool = False
    """The response is in a form that holds an answer of the server itself."""
    was_never_sent: bool = False

    @property
    def was_turned_away(self) -> bool:
        return self.was_never_sent or self.status in _TURNED_AWAY

    @property
    def may_be_forgotten(self) -> bool:
        """The server may have turned away the session and not the call. Servers that were started
        anew say so with 404, as the protocol wants, or with any other status that begins with a
        4."""
        return self.status is not None and 400 <= self.status < 500 and self.status != TOO_MANY


# The library sends a request in the context of the task that asked for it. Should it cease to, the
# record stays empty, and the outcome of a failed call counts as unknown.
POSTED: ContextVar[CallPosted | None] = ContextVar("posted", default=None)


@asynccontextmanager
async def open_address(
    address: Address, limits: ServerLimits, on_doubt: Callable[[], None]
) -> AsyncIterator[Any]:
    """Messages to and from the server at an address: the library's pair of streams.

    `on_doubt` is called when the server no longer lets us listen, although it did before: it may be
    gone, or another one than it was.
    """
    async with (
        _Client(
            limits.message_bytes_max,
            on_doubt,
            # Nothing compressed: a small message must not grow into a large one.
            headers={**address.headers, "Accept-Encoding": "identity"},
            # How long an answer may take is watched for each call.
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
            # A connection that was kept may have died meanwhile: what fails on it is of unknown
            # outcome, while a new one that cannot be made has certainly carried nothing.
            limits=httpx2.Limits(max_keepalive_connections=0),
        ) as client,
        streamable_http_client(
            address.url, http_client=client, max_sse_event_size=limits.message_bytes_max
        ) as streams,
    ):
        yield streams


class _Client(httpx2.AsyncClient):
    """Notes what becomes of each request, and takes in no more than it should."""

    def __init__(self, bytes_max: int, on_doubt: Callable[[], None], **options: Any) -> None:
        super().__init__(**options)
        self._bytes_max = bytes_max
        self._on_doubt = on_doubt
        self._has_listened = False

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        if request.method == "DELETE":  # saying goodbye
            request.extensions["timeout"] = httpx2.Timeout(FAREWELL_SECONDS).as_dict()
        posted = POSTED.get() if request.method == "POST" else None
        try:
            response = await super().send(request, **how)
        except httpx2.HTTPError as error:
            if posted is not None:
                posted.was_never_sent = isinstance(error, _NEVER_SENT)
            self._note_listening(request, is_heard=False)
            raise
        self._note_listening(request, is_heard=response.is_success)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if posted is not None:
            posted.status = response.status_code
            posted.is_answer = response.status_code == 200 and kind in (
                "application/json",
                "text/event-stream",
            )
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("the server compressed its answer", request=request)
        if kind != "text/event-stream" and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, self._bytes_max)
        return response

    def _note_listening(self, request: httpx2.Request, *, is_heard: bool) -> None:
        """The library listens by GET, as long as the server lets it, and gives up silently."""
        if request.method != "GET":
            return
        if self._has_listened and not is_heard:
            self._on_doubt()
        self._has_listened = self._has_listened or is_heard


class _Bounded(httpx2.AsyncByteStream):
    """The content of a response, up to a limit. Events have theirs in the library."""

    def __init__(self, inner: httpx2.AsyncByteStream, bytes_max: int) -> None:
        self._inner = inner
        self._bytes_max = bytes_max

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > self._bytes_max:
                raise httpx2.StreamError(f"it sent more than {self._bytes_max} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
