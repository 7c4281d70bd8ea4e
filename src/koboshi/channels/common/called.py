"""A server that a platform calls: each call is answered behind the commit of what it says."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog
from anyio import Event, create_task_group
from starlette.types import Receive, Scope, Send

from koboshi.channels.common.listening import listen, webhook_place
from koboshi.channels.common.serving import EmbeddedServer
from koboshi.domain.errors import StoreFailed

log = structlog.get_logger()

BODY_BYTES_MAX = 4_000_000
CONNECTIONS_MAX = 100
GOODBYE_S = 2
TOO_LARGE, NOT_STORED = 413, 503

Headers = dict[bytes, bytes]
Answer = tuple[int, bytes]
"""A status and a text. Whatever is not 200 is repeated by the platform."""


async def nothing() -> None:
    """There is nothing to do first."""


@dataclass(slots=True, kw_only=True)
class CalledServer:
    host: str
    port: int
    refusal: Callable[[str, Headers], int | None]
    """Looks at the method and the headers: a status where the body is not even read."""
    take: Callable[[Headers, bytes], Awaitable[Answer]]
    """Stores what a call says, and then answers."""
    _failure: StoreFailed | None = None
    _has_failed: Event = field(default_factory=Event)

    async def serve(
        self,
        *,
        first: Callable[[], Awaitable[None]] = nothing,
        then: Callable[[], Awaitable[None]] = nothing,
    ) -> None:
        """Serve until cancelled. `first` is awaited before anything is taken, `then` when calls are
        answered. Raises CannotListen where the address cannot be had, and StoreFailed as soon as
        a call has met with it."""
        with await listen(webhook_place(self.host, self.port)) as listener:
            await first()
            async with create_task_group() as tasks:
                server = EmbeddedServer(
                    self._serve, connections_max=CONNECTIONS_MAX, goodbye_s=GOODBYE_S
                )
                try:
                    tasks.start_soon(server.run_until_told, listener)
                    await server.is_serving.wait()
                    await then()
                    await self._has_failed.wait()
                finally:
                    server.should_exit = True
        if self._failure is not None:
            raise self._failure

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, body = await self._answer(scope, receive)
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        headers: Headers = dict(scope["headers"])
        refused = self.refusal(scope["method"], headers)
        if refused is not None:
            return refused, b""
        body = await _body(receive)
        if body is None:
            return TOO_LARGE, b""
        try:
            return await self.take(headers, body)
        except StoreFailed as failure:
            # The HTTP server would swallow it, and the channel has to end with it.
            self._failure = failure
            self._has_failed.set()
        except Exception:  # it is not stored: the platform is to bring it again
            log.error("webhook_failed", exc_info=True)
        return NOT_STORED, b""


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None if there is too much of it."""
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            return None
        pieces.append(event.get("body", b""))
        size += len(pieces[-1])
        more = event.get("more_body", False)
        if size > BODY_BYTES_MAX:
            return None
    return b"".join(pieces)
