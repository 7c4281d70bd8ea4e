"""A bot by hand: one request after the other to the fake platform, and what it was told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.fakes.telegram.server import FakeTelegram
from tests.harness.http import connection

JSON = dict[str, Any]


@dataclass(slots=True)
class HandClock:
    """A clock that a test moves."""

    now: float = 1_800_000_000

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class Bot:
    http: httpx2.AsyncClient
    prefix: str

    async def ask(self, method: str, **params: Any) -> JSON:
        """The whole answer, good or bad."""
        response = await self.http.post(f"{self.prefix}/{method}", json=params)
        found: JSON = response.json()
        assert response.status_code == found.get("error_code", 200)
        return found

    async def do(self, method: str, **params: Any) -> Any:
        """The result of what must work."""
        found = await self.ask(method, **params)
        assert found["ok"], found
        return found["result"]

    async def refusal(self, method: str, **params: Any) -> str:
        """The description of what must not work."""
        found = await self.ask(method, **params)
        assert not found["ok"], found
        return str(found["description"])


@asynccontextmanager
async def bot_at(fake: FakeTelegram) -> AsyncIterator[Bot]:
    async with connection(fake.url) as http:
        yield Bot(http, f"/bot{fake.token}")
