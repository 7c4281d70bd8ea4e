"""A real gateway with a bot, and the platform of the tests behind it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.telegram.history import Request
from tests.fakes.telegram.server import FakeTelegram, serving
from tests.fakes.telegram.state import Chat, Message, User
from tests.fakes.telegram.world import World
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.rows import Rows, glance, read_rows

SECTION = "KOBOSHI__CHANNELS__TELEGRAM__MAIN__"


@dataclass(slots=True)
class Bot:
    """A gateway on one home, its bot, and a person who is allowed to talk to it."""

    fake: FakeTelegram
    gateway: GatewayProcess
    ann: User
    chat: Chat
    env: dict[str, str] = field(default_factory=dict)

    @property
    def world(self) -> World:
        return self.fake.world

    def start(self, crash_at: str = "") -> None:
        self.gateway.start(crash_at=crash_at, env=self.env)

    def restart(self) -> None:
        self.gateway.kill()
        self.start()

    async def dies(self) -> None:
        """Wait until it has died at its crash point."""
        await self.gateway.wait_exit()

    def say(self, text: str, chat: Chat | None = None, **how: object) -> Message:
        return self.world.say(chat or self.chat, self.ann, text, **how)  # type: ignore[arg-type]

    def said(self, chat: Chat | None = None, topic: int | None = None) -> list[str]:
        """What the bot has said, in order."""
        seen = self.world.messages_seen(chat or self.chat, topic)
        return [message.text for message in seen if message.is_by_bot]

    async def hears(self, text: str, chat: Chat | None = None) -> Message:
        """Wait until the bot has said something that holds `text`."""

        def look() -> Message | None:
            seen = self.world.messages_seen(chat or self.chat)
            found = [each for each in seen if each.is_by_bot and text in each.text]
            return found[0] if found else None

        return await until(look, f"the bot says {text!r}", otherwise=self._all)

    async def comes_to_rest(self) -> Rows:
        """Wait until nothing is owed and no turn runs."""
        return await until(self._at_rest, "the gateway comes to rest", otherwise=self._all)

    def _at_rest(self) -> Rows | None:
        rows = glance(self.gateway.home)
        is_over = all(turn["closed_ms"] is not None for turn in rows.turns)
        is_settled = all(row["settled_ms"] is not None for row in rows.outbox)
        waits = [row for row in rows.inbox if row["state"] == "waiting"]
        is_at_rest = is_over and is_settled and not waits and not self.fake_waits()
        return read_rows(self.gateway.home) if is_at_rest else None

    def fake_waits(self) -> int:
        """Updates that the platform has not been told to forget."""
        return len(self.world.updates)

    def _all(self) -> str:
        asked = [(each.method, each.status, each.description) for each in self.requests()[-12:]]
        return f"{self.said()}\n{asked}\n{self.gateway.log[-3000:]}"

    def requests(self, method: str = "") -> list[Request]:
        history = self.fake.history
        return history.of(method) if method else list(history.requests)


@asynccontextmanager
async def a_bot(
    home: Path,
    *,
    env: Mapping[str, str] | None = None,
    allow: str = "",
    world: World | None = None,
    command: Sequence[str] = (),
) -> AsyncIterator[Bot]:
    async with serving(world) as fake:
        ann = fake.world.user("Ann", "ann")
        settings = {
            f"{SECTION}ALLOW": allow or f"[{ann.user_id}]",
            f"{SECTION}RATE_PER_SECOND": "0",
            **_known_by(fake),
        }
        gateway = GatewayProcess(home, env={**settings, **(env or {})}, command=command)
        bot = Bot(fake, gateway, ann, fake.world.private_chat(ann))
        try:
            yield bot
        finally:
            gateway.bury()


@asynccontextmanager
async def another_bot(first: Bot, bot_id: int) -> AsyncIterator[Bot]:
    """Another bot of the platform for the same section of the same gateway. It counts its updates
    and messages as the first one does, and the same person writes to it."""
    async with serving(World(bot_id=bot_id), token=f"{bot_id}:AAanother-bot") as fake:
        ann = fake.world.user("Ann", "ann")
        assert ann.user_id == first.ann.user_id
        chat = fake.world.private_chat(ann)
        yield Bot(fake, first.gateway, ann, chat, {**first.env, **_known_by(fake)})


def _known_by(fake: FakeTelegram) -> dict[str, str]:
    return {f"{SECTION}API_BASE": fake.url, "TELEGRAM_BOT_TOKEN": fake.token}
