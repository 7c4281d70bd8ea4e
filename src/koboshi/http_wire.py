"""One connection to a server, spoken to directly: HTTP/1.1 by llhttp on a transport of the loop.

A transport of httpx2. The library above it makes requests, follows redirects and decodes bodies;
its own transport took a third of a message's time, for a pool, locks and layers that one
connection does not need. What can go wrong has the same names as there, because callers tell by
them whether a request got to the server:

* Before the connection stands: `ConnectError`, `ConnectTimeout`. Nothing has left us.
* Afterwards: `ReadTimeout`, `ReadError`, `RemoteProtocolError`. What became of the request is
  unknown. It is never sent a second time here.

A connection is used again only after a whole answer that was read to its end, while the server
keeps it open and says nothing unasked, and for so long as servers usually do.
"""

import asyncio
import select
import ssl
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack

import httptools
import httpx2
from anyio import fail_after

from koboshi.http_dial import dial

HEAD_BYTES_MAX = 100_000
BUFFER_BYTES_MAX = 262_144
"""So much of a body is read ahead."""
REUSE_SECONDS_MAX = 5.0
PORTS = {"http": 80, "https": 443}
_NO_BODY = frozenset({204, 304})


class WireTransport(httpx2.AsyncBaseTransport):
    """One connection at a time, and one request at a time on it."""

    def __init__(self, trust: ssl.SSLContext) -> None:
        self._trust = trust
        self._connection: _Connection | None = None
        self._origin: tuple[str, str, int] | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        seconds: dict[str, float | None] = request.extensions.get("timeout", {})
        head = _head_of(request)
        connection = await self._connected(request.url, seconds.get("connect"))
        with ExitStack() as undo:
            undo.callback(connection.abort)
            await connection.send(request, head, seconds.get("write"))
            status, headers = await connection.answer(seconds.get("read"))
            undo.pop_all()
        body = _Body(connection, seconds.get("read"))
        return httpx2.Response(status, headers=headers, stream=body)

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    async def _connected(self, url: httpx2.URL, seconds: float | None) -> "_Connection":
        if url.scheme not in PORTS or not url.host:
            raise httpx2.UnsupportedProtocol(f"{url.scheme!r} is not spoken here")
        origin = (url.scheme, url.host, url.port or PORTS[url.scheme])
        known = self._connection
        if known is not None and self._origin == origin and known.is_usable:
            return known
        if known is not None:
            known.abort()
        self._connection = await self._open(origin, seconds)
        self._origin = origin
        return self._connection

    async def _open(self, origin: tuple[str, str, int], seconds: float | None) -> "_Connection":
        scheme, host, port = origin
        trust = self._trust if scheme == "https" else None
        loop = asyncio.get_running_loop()
        try:
            with fail_after(seconds), ExitStack() as undo:
                opened = await dial(host, port)
                undo.callback(opened.close)
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop),
                    sock=opened,
                    ssl=trust,
                    server_hostname=host if trust else None,
                )
                undo.pop_all()
                return connection
        except TimeoutError as error:
            raise httpx2.ConnectTimeout("the connection took too long") from error
        except (OSError, ssl.SSLError, UnicodeError) as error:
            raise httpx2.ConnectError(str(error)) from error


def _head_of(request: httpx2.Request) -> bytes:
    """The request line and the headers. Raises LocalProtocolError if one of them holds the end of
    a line: it would be read as something else."""
    lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%b: %b" % pair for pair in request.headers.raw]
    head = b"\r\n".join(lines)
    ends = len(lines) - 1
    if head.count(b"\r") != ends or head.count(b"\n") != ends or b"\0" in head:
        raise httpx2.LocalProtocolError("a header holds what no header can")
    return head + b"\r\n\r\n"


class _Connection(asyncio.Protocol):
    """Takes what the loop brings, and wakes the one caller that waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[bool] | None = None
        self._lost: BaseException | None = None
        self._is_lost = False
        self._is_paused = False
        """Whether the server takes no more for now."""
        self._is_spoiled = False
        """Whether something came that no request asked for."""
        self._is_busy = False
        self._idle_since = loop.time()
        self._look = select.poll()
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._status = 0
        self._has_head = False
        self._is_whole = False
        self._ends_with_connection = False
        self._head_bytes = 0
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._is_held = False
        self._is_kept = False
        self._answers_head = False

    @property
    def is_usable(self) -> bool:
        """Whether one more request can be sent."""
        if self._is_busy or self._is_lost or self._is_spoiled or self._transport is None:
            return False
        is_fresh = self._loop.time() - self._idle_since <= REUSE_SECONDS_MAX
        # The loop may not have told yet that the server hung up.
        return is_fresh and not self._look.poll(0)

    def abort(self) -> None:
        self._is_spoiled = True
        if self._transport is not None:
            self._transport.abort()

    async def send(self, request: httpx2.Request, head: bytes, seconds: float | None) -> None:
        """Send the request. A server that hangs up meanwhile may have answered before."""
        self._is_busy = True
        self._begin()
        self._answers_head = request.method == "HEAD"
        assert self._transport is not None
        try:
            body = request.content
        except httpx2.RequestNotRead:
            self._transport.write(head)
            await self._send_pieces(request, seconds)
            return
        self._transport.write(head + body)
        await self._drained(seconds)

    async def _send_pieces(self, request: httpx2.Request, seconds: float | None) -> None:
        is_chunked = "content-length" not in request.headers
        assert self._transport is not None
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        async for piece in request.stream:
            if piece and not self._is_lost:
                framed = b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece
                self._transport.write(framed)
                await self._drained(seconds)
        if is_chunked and not self._is_lost:
            self._transport.write(b"0\r\n\r\n")
            await self._drained(seconds)

    async def _drained(self, seconds: float | None) -> None:
        while self._is_paused and not self._is_lost:
            if not await self._news(seconds):
                raise httpx2.WriteTimeout("the server does not take the request")

    async def answer(self, seconds: float | None) -> tuple[int, list[tuple[bytes, bytes]]]:
        """The status and the headers, once they are there."""
        while not self._has_head:
            await self._more(seconds)
        return self._status, self._headers

    async def piece(self, seconds: float | None) -> bytes | None:
        """What there is of the body, at least a byte; None at its end."""
        while not self._pieces:
            if self._is_whole:
                return None
            await self._more(seconds)
        found = self._pieces.popleft() if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        if self._is_held and self._transport is not None:
            self._is_held = False
            self._transport.resume_reading()
        return found

    def end(self) -> None:
        """The caller is done with the answer, whether or not it was read to its end."""
        if not self._is_busy:
            return
        if self._is_whole and self._is_kept and not self._pieces and not self._is_lost:
            self._is_busy = False
            self._idle_since = self._loop.time()
        else:
            self.abort()

    async def _more(self, seconds: float | None) -> None:
        """Wait for more of the answer. Raises ReadTimeout, ReadError or RemoteProtocolError."""
        if self._is_lost or self._is_spoiled:
            lost = self._lost
            if isinstance(lost, httpx2.RemoteProtocolError):
                raise lost
            if lost is not None:
                raise httpx2.ReadError(str(lost)) from lost
            raise httpx2.RemoteProtocolError("the server hung up before the end of its answer")
        if not await self._news(seconds):
            raise httpx2.ReadTimeout("the server does not answer")

    async def _news(self, seconds: float | None) -> bool:
        """Wait until something happened; False if nothing did for so long."""
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._waiter = waiter
        timer = None if seconds is None else self._loop.call_later(seconds, _give_up, waiter)
        try:
            return await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(True)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # uvloop's own class
        self._look.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._lost = self._lost or exc
        if self._has_head and self._ends_with_connection and exc is None:
            self._is_whole = True
        self._wake()

    def eof_received(self) -> bool:
        return False  # it is closed, and `connection_lost` follows

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._wake()

    def data_received(self, piece: bytes) -> None:
        if not self._is_busy or self._is_whole:
            self.abort()  # it was asked nothing
            return
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserError as error:
            self._break(httpx2.RemoteProtocolError(f"this is no answer: {error}"))
        else:
            if not self._has_head:
                self._head_bytes += len(piece)
                if self._head_bytes > HEAD_BYTES_MAX:
                    self._break(httpx2.RemoteProtocolError("the headers have no end"))
        self._wake()

    def _break(self, error: httpx2.RemoteProtocolError) -> None:
        if not self._is_whole:
            self._lost = self._lost or error
        self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # the answer itself is still to come
            self._headers = []
            return
        self._status = status
        self._has_head = True
        self._is_kept = self._parser.should_keep_alive()
        names = {name.lower() for name, _ in self._headers}
        has_length = b"content-length" in names or b"transfer-encoding" in names
        if self._answers_head or status in _NO_BODY:
            self._is_whole = True
            self._is_kept = self._is_kept and status in _NO_BODY
        elif not has_length:
            self._ends_with_connection = True

    def on_body(self, body: bytes) -> None:
        if self._is_whole:
            return
        self._pieces.append(body)
        self._buffered += len(body)
        if self._buffered > BUFFER_BYTES_MAX and not self._is_held and self._transport is not None:
            self._is_held = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._has_head:
            self._is_whole = True

    def on_message_begin(self) -> None:
        if self._is_whole:
            self._is_spoiled = True  # a second answer to one request


def _give_up(waiter: "asyncio.Future[bool]") -> None:
    if not waiter.done():
        waiter.set_result(False)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, connection: _Connection, seconds: float | None) -> None:
        self._connection = connection
        self._seconds = seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (piece := await self._connection.piece(self._seconds)) is not None:
            yield piece

    async def aclose(self) -> None:
        self._connection.end()


def has_proxy(proxies: Iterable[str]) -> bool:
    """Whether the environment sends requests another way."""
    return any(name != "no" for name in proxies)
