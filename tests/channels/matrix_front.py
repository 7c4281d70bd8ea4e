"""What stands before a homeserver: it passes everything on but what it is told to refuse."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

import httpx2

from tests.fakes.listening import Listener
from tests.fakes.telegram.wire import Answered, Connection, HttpRequest, Reply
from tests.harness.polling import WITHIN_S
from tests.harness.synapse import Synapse


@dataclass(slots=True)
class Front:
    server: Synapse
    http: httpx2.AsyncClient
    refuses: dict[str, Reply] = field(default_factory=dict)
    """What is answered in place of the homeserver, by a part of the path."""
    refused: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, asked: HttpRequest, _: Connection) -> Answered:
        for part, reply in self.refuses.items():
            if part in asked.path:
                self.refused += 1
                return reply
        return self._pass_on(asked)

    async def _pass_on(self, asked: HttpRequest) -> Reply:
        headers = {"Authorization": asked.headers["authorization"], "Content-Type": asked.kind}
        query = f"?{asked.query}" if asked.query else ""
        place = f"{self.server.url}{quote(asked.path)}{query}"
        told = await self.http.request(asked.verb, place, content=asked.body, headers=headers)
        return Reply(told.status_code, told.content, told.headers.get("content-type", ""))


@asynccontextmanager
async def a_front(server: Synapse) -> AsyncIterator[Front]:
    async with httpx2.AsyncClient(trust_env=False, timeout=WITHIN_S) as http:
        front = Front(server, http)
        listener = Listener(front.answer)
        await listener.open()
        front.port = listener.port
        try:
            yield front
        finally:
            await listener.close()
