"""A real gateway with a Discord bot, and the platform of the tests behind it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from koboshi.channels.discord.cursor import place_in
from tests.fakes.discord.server import FakeDiscord, serving_discord
from tests.fakes.discord.state import DiscordChannel, DiscordMessage, DiscordUser
from tests.fakes.discord.world import DiscordWorld
from tests.fakes.telegram.history import Request
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.rows import Rows, glance, read_rows

SECTION = "KOBOSHI__CHANNELS__DISCORD__MAIN__"


@dataclass(slots=True)
class DiscordBot:
    """A gateway on one home, its bot, and a person who is allowed to talk to it."""

    fake: FakeDiscord
    gateway: GatewayProcess
    ann: DiscordUser
    dm: DiscordChannel
    env: dict[str, str] = field(default_factory=dict)

    @property
    def world(self) -> DiscordWorld:
        return self.fake.world

    def start(self, crash_at: str = "") -> None:
        self.gateway.start(crash_at=crash_at, env=self.env)

    async def dies(self) -> None:
        """Wait until it has died at its crash point."""
        await self.gateway.wait_exit()

    async def is_whole(self) -> None:
        """Wait until the newest session can be resumed."""

        def look() -> bool:
            newest = [*self.fake.gateway.sessions.all][-1:]
            stored = [place_in(each["token"]).session for each in glance(self.gateway.home).cursors]
            return bool(newest) and newest == stored

        await until(look, "the session is stored", otherwise=self._all)

    async def outlast_session(self) -> None:
        """So much time passes that no session can be resumed and no nonce is known."""
        await until(lambda: not self.fake.gateway.links, "the platform sees that we are gone")
        self.world.forward(600)

    def to_us(self, text: str) -> str:
        return f"<@{self.world.bot.user_id}> {text}"

    def say(self, text: str, place: DiscordChannel | None = None) -> DiscordMessage:
        """In a server the bot is named."""
        where = place or self.dm
        return self.world.say(where, self.ann, text if where is self.dm else self.to_us(text))

    def said(self, place: DiscordChannel | None = None) -> list[str]:
        """What the bot has said, in order."""
        seen = self.world.messages_seen(place or self.dm)
        return [message.content for message in seen if message.is_by_bot]

    async def hears(self, text: str, place: DiscordChannel | None = None) -> DiscordMessage:
        """Wait until the bot has said something that holds `text`."""

        def look() -> DiscordMessage | None:
            seen = self.world.messages_seen(place or self.dm)
            found = [each for each in seen if each.is_by_bot and text in each.content]
            return found[0] if found else None

        return await until(look, f"the bot says {text!r}", otherwise=self._all)

    async def comes_to_rest(self, entries: int = 0) -> Rows:
        """Wait until nothing is owed and no turn runs, with at least so many entries."""

        def look() -> Rows | None:
            rows = glance(self.gateway.home)
            is_over = all(turn["closed_ms"] is not None for turn in rows.turns)
            is_settled = all(row["settled_ms"] is not None for row in rows.outbox)
            waits = [row for row in rows.inbox if row["state"] == "waiting"]
            is_at_rest = is_over and is_settled and not waits and len(rows.inbox) >= entries
            return read_rows(self.gateway.home) if is_at_rest else None

        return await until(look, "the gateway comes to rest", otherwise=self._all)

    def requests(self, method: str = "") -> list[Request]:
        history = self.fake.history
        return history.of(method) if method else list(history.requests)

    def _all(self) -> str:
        asked = [(each.method, each.status, each.description) for each in self.requests()[-12:]]
        return f"{self.said()}\n{asked}\n{self.gateway.log[-3000:]}"


@asynccontextmanager
async def a_discord_bot(
    home: Path,
    *,
    env: Mapping[str, str] | None = None,
    allow: str = "",
    command: Sequence[str] = (),
) -> AsyncIterator[DiscordBot]:
    async with serving_discord() as fake:
        ann = fake.world.user("Ann")
        settings = {
            f"{SECTION}ALLOW": allow or f'["{ann.user_id}"]',
            f"{SECTION}RATE_PER_SECOND": "0",
            f"{SECTION}API_BASE": fake.api_url,
            "DISCORD_BOT_TOKEN": fake.token,
        }
        gateway = GatewayProcess(home, env={**settings, **(env or {})}, command=command)
        bot = DiscordBot(fake, gateway, ann, fake.world.dm(ann))
        try:
            yield bot
        finally:
            gateway.bury()
