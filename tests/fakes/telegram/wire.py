"""As much of HTTP/1.1 as a Bot API client uses, without a framework: a request costs little."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

END_OF_HEAD = b"\r\n\r\n"
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    verb: str
    path: str
    query: str
    kind: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """By their names in lower case."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    kind: str = "application/json"
    is_dropped: bool = False
    """The connection ends without it."""
    headers: tuple[tuple[str, str], ...] = ()
    """Beside those that every reply has."""
    at: float | None = None
    """The time that the server tells; None: the machine's."""


DROPPED = Reply(0, b"", is_dropped=True)
Answered = Reply | Coroutine[Any, Any, Reply]


class Connection(asyncio.Protocol):
    """One client. Requests are answered one after the other, at once where that is possible."""

    def __init__(
        self,
        answer: Callable[[HttpRequest, "Connection"], Answered],
        connections: set["Connection"],
        tasks: set[asyncio.Task[None]],
    ) -> None:
        self._answer = answer
        self._connections = connections
        self._tasks = tasks
        self._buffer = bytearray()
        self._is_busy = False
        self._transport: asyncio.Transport | None = None
        self.when_lost: Callable[[], None] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """What was asked for is done all the same: the platform has read the request."""
        self._transport = None
        self._connections.discard(self)
        self.when_lost()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_busy:
            self._go_on()

    def drop(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _go_on(self) -> None:
        while (request := self._next_request()) is not None:
            answered = self._answer(request, self)
            if isinstance(answered, Reply):
                self._send(answered)
                continue
            self._is_busy = True
            # Not a task group: the server is set up and torn down in different tasks.
            task = asyncio.get_running_loop().create_task(self._send_later(answered))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return

    async def _send_later(self, answered: Coroutine[Any, Any, Reply]) -> None:
        self._send(await answered)
        self._is_busy = False
        self._go_on()

    def _send(self, reply: Reply) -> None:
        if self._transport is None:
            return
        if reply.is_dropped:
            self._transport.abort()
            return
        reason = REASONS.get(reply.status, "Told")
        date = formatdate(reply.at, usegmt=True)
        head = (
            f"HTTP/1.1 {reply.status} {reason}\r\nContent-Type: {reply.kind}\r\n"
            f"Date: {date}\r\n"
            f"Content-Length: {len(reply.body)}\r\n"
            + "".join(f"{name}: {words}\r\n" for name, words in reply.headers)
            + "\r\n"
        )
        self._transport.write(head.encode("latin-1") + reply.body)

    def _next_request(self) -> HttpRequest | None:
        """Take the next whole request out of the buffer; None if there is none yet."""
        end = self._buffer.find(END_OF_HEAD)
        if end < 0:
            return None
        start, *lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, words = line.partition(":")
            headers[name.lower()] = words.strip()
        if headers.get("expect") and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body, after = _unchunked(self._buffer, end + 4)
        else:
            after = end + 4 + int(headers.get("content-length", "0"))
            body = bytes(self._buffer[end + 4 : after]) if len(self._buffer) >= after else None
        if body is None:
            return None
        del self._buffer[:after]
        verb, target, _ = start.split(" ")
        path, _, query = target.partition("?")
        kind = headers.get("content-type", "")
        return HttpRequest(verb, unquote(path), query, kind, body, headers)


def _unchunked(buffer: bytearray, begin: int) -> tuple[bytes | None, int]:
    """The body that came in chunks and where it ends; None if it has not come to an end."""
    body = b""
    while (line_end := buffer.find(b"\r\n", begin)) >= 0:
        size = int(bytes(buffer[begin:line_end]).partition(b";")[0], 16)
        after = line_end + 2 + size + 2
        if len(buffer) < after:
            break
        if size == 0:
            return body, after
        body += buffer[line_end + 2 : line_end + 2 + size]
        begin = after
    return None, 0
