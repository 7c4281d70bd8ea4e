"""The Telegram channel in the test's own loop, with the fake platform behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from anyio import create_task_group, fail_after

from koboshi.channels.telegram.channel import TelegramChannel
from koboshi.channels.telegram.options import TelegramOptions
from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, TurnId
from koboshi.domain.outbox import Delivery, Near
from koboshi.domain.route import Route
from koboshi.domain.transcript import Choice
from koboshi.ports.channel import Accept
from tests.channels.fakes import FakeClock, until
from tests.fakes.telegram.server import FakeTelegram
from tests.fakes.telegram.state import Chat, Message, Topic
from tests.harness.polling import WITHIN_S

MAIN = ChannelName("telegram:main")
YES_NO = (Choice(choice_id="yes", label="Yes"), Choice(choice_id="no", label="No"))


@asynccontextmanager
async def a_channel(fake: FakeTelegram, **options: Any) -> AsyncIterator[TelegramChannel]:
    """The channel of the fake's bot; without limits of its own unless told."""
    given: dict[str, Any] = {
        "name": MAIN,
        "token": fake.token,
        "api_base": fake.url,
        "ambiguous": "probe",
        "per_second": 0,
        "home": Path("nowhere"),
        **options,
    }
    clock = given.pop("clock", None) or FakeClock()
    channel = TelegramChannel(TelegramOptions(**given), clock)
    try:
        yield channel
    finally:
        await channel.close()


@asynccontextmanager
async def receiving(
    channel: TelegramChannel, accept: Accept, cursor: str | None = None
) -> AsyncIterator[None]:
    """The channel, connected, for the length of the block."""
    async with create_task_group() as tasks:
        tasks.start_soon(channel.receive, cursor, accept)
        await until(lambda: channel.trouble is None)
        yield
        tasks.cancel_scope.cancel()


def route_of(chat: Chat, topic: Topic | None = None) -> Route:
    thread = "" if topic is None else str(topic.topic_id)
    return Route(channel=MAIN, chat=str(chat.chat_id), thread=thread)


def owed(route: Route, text: str = "hello", **fields: Any) -> Delivery:
    made = Delivery(
        delivery_id=DeliveryId(7),
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


def near(*before: Message, known: tuple[str, ...] = (), is_alone: bool = True) -> Near:
    ids = tuple(str(message.message_id) for message in before)
    return Near(before=ids, known=known, is_alone=is_alone)


@dataclass
class TelegramRig:
    """What the shared contract holds: see `test_contract.Rig`."""

    channel: TelegramChannel
    fake: FakeTelegram
    chat: Chat
    topic: Topic
    before: Message
    _told: dict[int, int] = field(default_factory=dict)

    @property
    def route(self) -> Route:
        return route_of(self.chat, self.topic)

    @property
    def near(self) -> Near:
        return near(self.before)

    async def ready(self) -> None:
        await until(lambda: self.channel.trouble is None)

    async def write(self, text: str, number: int) -> bool:
        updates = self.fake.world.updates
        if number in self._told:
            told = self.fake.world.redeliver(self._told[number], renumbered=True)
        else:
            said = f"@koboshi_bot {text}"
            self.fake.world.say(self.chat, self.fake.world.user("Ann"), said, topic=self.topic)
            told = self._told[number] = max(updates.told)
        with fail_after(WITHIN_S):
            await until(lambda: told in updates.acknowledged or self._is_refused(told))
        return told in updates.acknowledged

    def _is_refused(self, told: int) -> bool:
        """It was handed over, and no one asks for more."""
        asked = self.fake.history.recorded("getUpdates")
        return self.channel.trouble is not None and any(told in each.result for each in asked)


@asynccontextmanager
async def rig_at(fake: FakeTelegram) -> AsyncIterator[TelegramRig]:
    chat = fake.world.supergroup(forum=True)
    topic = fake.world.topic(chat, "work", fake.world.user("Bob"))
    before = fake.world.say(chat, fake.world.user("Bob"), "lunch?")
    fake.world.updates.drop_all()
    async with a_channel(fake) as channel:
        yield TelegramRig(channel, fake, chat, topic, before)
