"""Where the platform calls us: one address, one secret, and an answer after the commit."""

import hmac
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
_SECRET = b"x-telegram-bot-api-secret-token"


@dataclass(slots=True, kw_only=True)
class Webhook:
    host: str
    port: int
    secret: str
    store: Callable[[bytes], Awaitable[None]]
    _failure: StoreFailed | None = None
    _has_failed: Event = field(default_factory=Event)

    async def serve(self, when_listening: Callable[[], Awaitable[None]]) -> None:
        """Serve until cancelled. Raises CannotListen where the address cannot be had, and
        StoreFailed as soon as a call has met with it."""
        with await listen(webhook_place(self.host, self.port)) as listener:
            async with create_task_group() as tasks:
                server = EmbeddedServer(
                    self._answer, connections_max=CONNECTIONS_MAX, goodbye_s=GOODBYE_S
                )
                try:
                    tasks.start_soon(server.run_until_told, listener)
                    await server.is_serving.wait()
                    await when_listening()
                    await self._has_failed.wait()
                finally:
                    server.should_exit = True
        if self._failure is not None:
            raise self._failure

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status = await self._status(scope, receive)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def _status(self, scope: Scope, receive: Receive) -> int:
        """What the call is answered with. Whatever is not 200 is repeated by the platform."""
        shown = dict(scope["headers"]).get(_SECRET, b"")
        if not hmac.compare_digest(shown, self.secret.encode()):
            return 403
        if scope["method"] != "POST":
            return 405
        body = await _body(receive)
        if body is None:
            return 413
        try:
            await self.store(body)
        except StoreFailed as failure:
            # The HTTP server would swallow it, and the channel has to end with it.
            self._failure = failure
            self._has_failed.set()
            return 503
        except Exception:  # it is not stored: the platform is to bring it again
            log.error("webhook_failed", exc_info=True)
            return 503
        return 200


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
