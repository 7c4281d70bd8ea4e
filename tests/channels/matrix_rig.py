"""The Matrix channel in the test's own loop, with a real homeserver behind it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio import fail_after

from koboshi.channels.matrix.channel import MatrixChannel
from koboshi.channels.matrix.options import MatrixOptions
from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import Near
from koboshi.domain.route import Route
from tests.channels.fakes import FakeClock
from tests.harness.polling import until, until_asked
from tests.harness.synapse import Person, Synapse

MAIN = ChannelName("matrix:main")
NOTHING_NEAR = Near(before=(), known=(), is_alone=True)


async def no_watermarks(account: str) -> Mapping[str, str]:
    return {}


async def all_allowed(person: str) -> bool:
    return True


@asynccontextmanager
async def a_channel(bot: Person, **options: Any) -> AsyncIterator[MatrixChannel]:
    """The channel of an account; without limits of its own unless told."""
    given: dict[str, Any] = {
        "name": MAIN,
        "homeserver": bot.server.url,
        "user": bot.user,
        "token": bot.token,
        "ambiguous": "probe",
        "per_second": 0,
        "home": Path("nowhere"),
        "watermarks": no_watermarks,
        "is_allowed": all_allowed,
        **options,
    }
    clock = given.pop("clock", None) or FakeClock()
    channel = MatrixChannel(MatrixOptions(**given), clock)
    try:
        yield channel
    finally:
        await channel.close()


@dataclass
class MatrixRig:
    """What the shared contract holds: see `test_contract.Rig`."""

    channel: MatrixChannel
    ann: Person
    bot: Person
    room: str
    root: str
    near: Near = NOTHING_NEAR
    _said: dict[int, str] = field(default_factory=dict)

    @property
    def route(self) -> Route:
        return Route(channel=MAIN, chat=self.room, thread=self.root)

    async def ready(self) -> None:
        await until(lambda: self.channel.trouble is None, "the channel is up")

    async def write(self, text: str, number: int) -> bool:
        """A repeat is a new connection from an old place, which brings the same event again."""
        if number in self._said:
            return await self._comes_again()
        relation = {"rel_type": "m.thread", "event_id": self.root}
        said = await self.ann.say(self.room, text, **{"m.relates_to": relation})
        self._said[number] = said
        with fail_after(60):
            await until_asked(lambda: self._is_read(said), "the event is read, or cannot be")
        return self.channel.trouble is None

    async def _is_read(self, event_id: str) -> bool:
        """We show that we have read an event when it is stored, and not before."""
        answer = await self.ann.ask(
            "GET", "/sync", timeout=0, filter='{"room":{"ephemeral":{"types":["m.receipt"]}}}'
        )
        news = answer["rooms"]["join"][self.room]["ephemeral"]["events"]
        read = [event["content"] for event in news if event["type"] == "m.receipt"]
        is_seen = any(
            self.bot.user in content.get(event_id, {}).get("m.read", {}) for content in read
        )
        return is_seen or self.channel.trouble is not None

    async def _comes_again(self) -> bool:
        raise NotImplementedError


@asynccontextmanager
async def rig_at(server: Synapse) -> AsyncIterator[MatrixRig]:
    ann, bot = await server.person("ann"), await server.person("bot")
    room = await ann.room(bot.user)
    await bot.join(room)
    root = await ann.say(room, "a thread")
    async with a_channel(bot) as channel:
        yield MatrixRig(channel, ann, bot, room, root)
