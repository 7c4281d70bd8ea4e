"""An operator who starts the gateway again whenever it dies, and the people who talk to it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from anyio import create_task_group

from tests.harness.client import Client
from tests.harness.polling import until, until_asked
from tests.harness.process import KILLED, GatewayProcess
from tests.harness.rows import Rows, read_rows


@dataclass(slots=True)
class Lives:
    """A gateway that dies at each of `deaths_planned` in turn, and is started again each time."""

    gateway: GatewayProcess
    deaths_planned: Sequence[str]
    remains: list[Rows] = field(default_factory=list)
    """What lay on the disk after each death."""
    people: list[Client] = field(default_factory=list)
    is_over: bool = False

    @property
    def address(self) -> str | None:
        return self.gateway.address

    @property
    def token(self) -> str:
        return self.gateway.token

    def person(self, chat: str) -> Client:
        client = Client(self, chat)
        self.people.append(client)
        return client

    async def all_deaths(self) -> None:
        """Wait until every planned death has happened, and somebody is there again."""
        planned = len(self.deaths_planned)
        await until(
            lambda: len(self.remains) == planned and self.address is not None,
            f"the gateway dies at each of {list(self.deaths_planned)}",
            otherwise=lambda: f"it died {len(self.remains)} times. {self.gateway.log[-3000:]}",
        )

    async def quiet(self) -> None:
        """Wait until nothing is worked on, nothing waits and nothing is owed."""
        await until_asked(self._is_quiet, "the gateway comes to rest")

    async def _is_quiet(self) -> bool:
        address = self.address
        if address is None:
            return False
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx2.AsyncClient(base_url=address, headers=headers, trust_env=False) as http:
            try:
                status = (await http.get("/api/v1/status")).json()
            except httpx2.TransportError:
                return False
        return not (status["turns"] or status["inbox_waiting"] or status["outbox_unsettled"])

    async def keep_up(self) -> None:
        """Start it, and start it again whenever it has died as planned."""
        for crash_at in [*self.deaths_planned, ""]:
            self.gateway.start(crash_at=crash_at)
            await until(lambda: not self.gateway.is_running or self.is_over, "", within_s=100)
            if self.is_over:
                return
            log = self.gateway.log[-4000:]
            assert self.gateway.exit_code == KILLED, f"{self.gateway.exit_code} at {crash_at} {log}"
            assert crash_at, f"the gateway died by itself:\n{log}"
            self.remains.append(read_rows(self.gateway.home))
        raise AssertionError("unreachable")


@asynccontextmanager
async def lives(
    home: Path, deaths: Sequence[str] = (), *, env: Mapping[str, str] | None = None
) -> AsyncIterator[Lives]:
    """A gateway on `home` that dies at each of `deaths` in turn; it is gone after the block."""
    gateway = GatewayProcess(home, env=env)
    life = Lives(gateway, deaths)
    try:
        async with create_task_group() as tasks:
            tasks.start_soon(life.keep_up)
            yield life
            life.is_over = True
    finally:
        gateway.bury()
