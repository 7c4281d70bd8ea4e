"""A real gateway with an account of Matrix, and a real homeserver behind it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.polling import until, until_asked
from tests.harness.process import GatewayProcess
from tests.harness.rows import Rows, glance, read_rows
from tests.harness.synapse import Person, Synapse

SECTION = "KOBOSHI__CHANNELS__MATRIX__MAIN__"


@dataclass(slots=True)
class MatrixBot:
    """A gateway on one home, its account, and a person who is allowed to talk to it in a room."""

    server: Synapse
    gateway: GatewayProcess
    bot: Person
    ann: Person
    room: str

    def start(self, crash_at: str = "") -> None:
        self.gateway.start(crash_at=crash_at)

    async def dies(self) -> None:
        """Wait until it has died at its crash point."""
        await self.gateway.wait_exit()

    async def say(self, text: str, room: str = "") -> str:
        return await self.ann.say(room or self.room, text)

    async def hears(self, text: str, room: str = "") -> dict[str, Any]:
        try:
            return await self.ann.hears(room or self.room, text, self.bot.user)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.gateway.log[-3000:]}") from None

    async def said(self, room: str = "") -> list[str]:
        """What the bot has said, in order."""
        return await self.ann.said_by(room or self.room, self.bot.user)

    async def joins(self, room: str) -> None:
        """Wait until the bot is in a room."""

        async def look() -> bool:
            members = await self.ann.ask("GET", f"/rooms/{room}/joined_members")
            return self.bot.user in members["joined"]

        await until_asked(look, f"the bot joins. {self.gateway.log[-2000:]}")

    async def is_connected(self) -> None:
        """Wait until a first place is stored: nothing from before it is taken."""
        await until(
            lambda: glance(self.gateway.home).cursors,
            "the gateway has a place",
            otherwise=lambda: self.gateway.log[-3000:],
        )

    async def comes_to_rest(self, messages: int) -> Rows:
        """Wait until so many messages are taken in, nothing is owed and no turn runs."""

        def look() -> Rows | None:
            rows = glance(self.gateway.home)
            taken = [row for row in rows.inbox if row["kind"] != "ignored"]
            is_over = all(turn["closed_ms"] is not None for turn in rows.turns)
            is_settled = all(row["settled_ms"] is not None for row in rows.outbox)
            is_at_rest = len(taken) >= messages and is_over and is_settled
            waits = any(row["state"] == "waiting" for row in rows.inbox)
            return read_rows(self.gateway.home) if is_at_rest and not waits else None

        return await until(
            look, "the gateway comes to rest", otherwise=lambda: self.gateway.log[-3000:]
        )


@asynccontextmanager
async def a_matrix_bot(
    home: Path, server: Synapse, *, env: Mapping[str, str] | None = None
) -> AsyncIterator[MatrixBot]:
    await server.ready()
    ann, bot = await server.person("ann"), await server.person("bot")
    room = await ann.room(bot.user)
    await bot.join(room)
    settings = {
        f"{SECTION}HOMESERVER": server.url,
        f"{SECTION}USER": bot.user,
        f"{SECTION}TOKEN": bot.token,
        f"{SECTION}ALLOW": f'["{ann.user}"]',
        f"{SECTION}RATE_PER_SECOND": "0",
        **(env or {}),
    }
    gateway = GatewayProcess(home, env=settings)
    try:
        yield MatrixBot(server, gateway, bot, ann, room)
    finally:
        gateway.bury()
