"""Where the platform calls us: one address, one secret, and an answer after the commit."""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from koboshi.channels.common.called import Answer, CalledServer, Headers

_SECRET = b"x-telegram-bot-api-secret-token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    host: str
    port: int
    secret: str
    store: Callable[[bytes], Awaitable[None]]

    async def serve(self, when_listening: Callable[[], Awaitable[None]]) -> None:
        """Serve until cancelled. Raises CannotListen where the address cannot be had, and
        StoreFailed as soon as a call has met with it."""
        server = CalledServer(
            host=self.host, port=self.port, refusal=self._refusal, take=self._take
        )
        await server.serve(then=when_listening)

    def _refusal(self, method: str, headers: Headers) -> int | None:
        if not hmac.compare_digest(headers.get(_SECRET, b""), self.secret.encode()):
            return 403
        return None if method == "POST" else 405

    async def _take(self, _: Headers, body: bytes) -> Answer:
        await self.store(body)
        return 200, b""
