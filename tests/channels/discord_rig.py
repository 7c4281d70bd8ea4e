"""The Discord channel in the test's own loop, with the fake platform behind it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from anyio import create_task_group, fail_after

from koboshi.channels.discord.channel import DiscordChannel
from koboshi.channels.discord.cursor import place_in
from koboshi.channels.discord.options import DiscordOptions
from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, TurnId
from koboshi.domain.outbox import Delivery, Near
from koboshi.domain.route import Route
from koboshi.ports.channel import Accept
from koboshi.ports.clock import Clock
from tests.channels.fakes import FakeClock, FakeGateway, until
from tests.fakes.discord import state
from tests.fakes.discord.server import FakeDiscord
from tests.harness.polling import WITHIN_S

MAIN = ChannelName("discord:main")


@dataclass
class Bot:
    """A channel that may be made anew, and what is stored of it: the store outlives it."""

    fake: FakeDiscord
    gateway: FakeGateway = field(default_factory=FakeGateway)
    options: dict[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=FakeClock)

    async def watermarks(self, account: str) -> Mapping[str, str]:
        assert account == str(self.fake.world.bot.user_id)
        return {chat: token for chat, token in self.gateway.watermarks.items() if token}

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[DiscordChannel]:
        """One life of it."""
        given: dict[str, Any] = {
            "name": MAIN,
            "token": self.fake.token,
            "api_base": self.fake.api_url,
            "ambiguous": "probe",
            "per_second": 0,
            "home": Path("nowhere"),
            **self.options,
        }
        channel = DiscordChannel(DiscordOptions(**given), self.clock, self.watermarks)
        try:
            yield channel
        finally:
            await channel.close()

    @asynccontextmanager
    async def connected(self, accept: Accept | None = None) -> AsyncIterator[DiscordChannel]:
        """A life that receives for the length of the block, from where the last one was."""
        async with self.channel() as channel, create_task_group() as tasks:
            tasks.start_soon(channel.receive, self.gateway.cursor, accept or self.gateway.accept)
            await until(lambda: channel.trouble is None)
            yield channel
            tasks.cancel_scope.cancel()
        # The platform may hear of it a moment later.
        sessions = self.fake.gateway.sessions.all
        await until(lambda: all(each.left_at is not None for each in sessions.values()))

    @property
    def texts(self) -> list[str]:
        """What people said to us and is stored, in the order in which it was."""
        found = [inbound for _, inbound in self.gateway.stored.values()]
        return [each.words.text for each in found if each.ignored is None and each.is_addressed]

    async def stores(self, *texts: str) -> None:
        with fail_after(WITHIN_S):
            await until(lambda: set(texts) <= set(self.texts))

    async def is_whole(self) -> None:
        """Wait until the session of the newest connection is stored."""
        newest = [*self.fake.gateway.sessions.all][-1:]
        with fail_after(WITHIN_S):
            await until(lambda: [place_in(self.gateway.cursor).session] == newest)

    def forget_session(self) -> None:
        """So much time passes that the session cannot be resumed."""
        self.fake.world.forward(self.fake.gateway.sessions.resume_s + 60)


def route_of(channel: state.DiscordChannel) -> Route:
    if channel.is_thread and channel.parent is not None:
        parent, thread = str(channel.parent.channel_id), str(channel.channel_id)
        return Route(channel=MAIN, chat=parent, thread=thread)
    return Route(channel=MAIN, chat=str(channel.channel_id))


def owed(route: Route, text: str = "hello", **fields: Any) -> Delivery:
    made = Delivery(
        delivery_id=DeliveryId(7),
        send_key="aaaaaaaaaa-7",
        session_id=SessionId(1),
        turn_id=TurnId(1),
        route=route,
        cause="step:1",
        part=1,
        parts=1,
        text=text,
        choices=(),
        question=None,
        anchor="",
        attempts=1,
        created_ms=0,
        is_ambiguous=False,
        may_be_duplicate=False,
    )
    return replace(made, **fields)


def near(*before: state.DiscordMessage, known: tuple[str, ...] = (), is_alone: bool = True) -> Near:
    ids = tuple(str(message.message_id) for message in before)
    return Near(before=ids, known=known, is_alone=is_alone)


@dataclass
class DiscordRig:
    """What the shared contract holds: see `test_contract.Rig`."""

    channel: DiscordChannel
    fake: FakeDiscord
    thread: state.DiscordChannel
    before: state.DiscordMessage
    person: state.DiscordUser
    _told: dict[int, state.DiscordMessage] = field(default_factory=dict)

    @property
    def route(self) -> Route:
        return route_of(self.thread)

    @property
    def near(self) -> Near:
        return near(self.before)

    async def ready(self) -> None:
        await until(lambda: self.channel.trouble is None)

    async def write(self, text: str, number: int) -> bool:
        """The platform believes what our heartbeats say: which event is stored."""
        await self.ready()
        gateway = self.fake.gateway
        if number in self._told:
            self.fake.world.tell(self._told[number])
        else:
            said = f"<@{self.fake.world.bot.user_id}> {text}"
            self._told[number] = self.fake.world.say(self.thread, self.person, said)
        (session,) = [each for each in gateway.sessions.all.values() if not each.is_over][-1:]
        wanted = session.seq
        with fail_after(WITHIN_S):
            await until(lambda: self._is_believed(wanted) or self.channel.trouble is not None)
        return self._is_believed(wanted)

    def _is_believed(self, seq: int) -> bool:
        """The platform asks, and is told."""
        self.fake.gateway.ask_for_heartbeat()
        return any((link.believes or 0) >= seq for link in self.fake.gateway.links)


@asynccontextmanager
async def discord_rig_at(fake: FakeDiscord) -> AsyncIterator[DiscordRig]:
    world = fake.world
    place = world.text_channel(world.guild())
    thread = world.thread(place)
    person = world.user("Bob")
    before = world.say(thread, person, "lunch?")
    # The platform tells the time to the second: what was said before is of an earlier one.
    world.forward(2)
    async with Bot(fake).channel() as channel:
        yield DiscordRig(channel, fake, thread, before, person)
