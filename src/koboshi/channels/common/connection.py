"""One connection of a client, as patient as it should be.

The server that we embed waits for ever: for the rest of a request, and for the client to read an
answer. It keeps a head however long it gets, and requests however many come before the first one is
answered. So one program without the token could hold every connection there may be, or all of the
memory.
"""

import asyncio
from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from koboshi.channels.common.acceptor import Arriving
from koboshi.channels.common.http_limits import HttpLimits

HEALTH_PATH = b"/healthz"


class PatientProtocol(HttpToolsProtocol, Arriving):
    """One connection, with limits. A request that is being answered takes as long as it likes."""

    def __init__(self, *arguments: Any, patience: HttpLimits, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._patience = patience
        self._arriving: TimerHandle | None = None
        self._unread: TimerHandle | None = None
        self._running: RequestResponseCycle | None = None
        self._is_in_head = True
        self._received = 0
        self._head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        if self._running is not None and not self._running.response_complete:
            # The server itself tells only the last one that came.
            self._running.disconnected = True
            self._running.message_event.set()
        self.pipeline.clear()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, chunk: bytes) -> None:
        self._received += len(chunk)
        super().data_received(chunk)
        if not self.transport.is_closing() and self._received > self._bytes_max:
            self._refuse()

    def on_url(self, url: bytes) -> None:
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(name, value)
        super().on_header(name, value)

    @property
    def is_arriving(self) -> bool:
        """Whether no whole request is here, so that ending it costs no client an answer."""
        running = self._running
        return running is None or running.response_complete or running.more_body

    def make_way(self) -> None:
        """End it: others need the room, and it has asked for nothing yet."""
        self.transport.abort()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        served_max = self.limit_concurrency
        if self.url.partition(b"?")[0] == HEALTH_PATH:
            # A health check is not refused because there are too many others.
            self.limit_concurrency = None
        super().on_headers_complete()
        self.limit_concurrency = served_max
        if len(self.pipeline) > self._patience.ahead_max:
            self.transport.abort()
            raise ValueError("too many requests before the first one is answered")

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_in_head, self._received, self._head = True, 0, 0
        if self.cycle.response_complete:
            self._expect_request()
        else:
            self._expect_nothing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._expect_request()

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self._patience.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def _bytes_max(self) -> int:
        limits = self._patience
        return limits.head_bytes_max if self._is_in_head else limits.request_bytes_max

    def _count(self, *pieces: bytes) -> None:
        """Raises ValueError, which the parser takes for a wrong request, if the head is too
        long."""
        self._head += sum(map(len, pieces))
        if self._head > self._patience.head_bytes_max:
            raise ValueError("the head of the request is too long")

    def _refuse(self) -> None:
        """Before there is an answer it can be told; otherwise the connection just ends."""
        if self._running is None or self._running.response_complete:
            self.send_400_response("The request is too long.")
        else:
            self.transport.abort()

    def _expect_request(self) -> None:
        self._expect_nothing()
        self._arriving = self.loop.call_later(self._patience.request_s, self._give_up)

    def _expect_nothing(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None

    def _give_up(self) -> None:
        running = self._running
        is_answered_now = running is not None and not (
            running.response_complete or running.more_body
        )
        if not is_answered_now:
            self.transport.abort()
