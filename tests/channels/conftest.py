"""What the tests of channels share: the fake Telegram, people in it, and a bot by hand."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from koboshi.channels.telegram.channel import TelegramChannel
from tests.channels.telegram_bot import Bot, HandClock, bot_at
from tests.channels.telegram_rig import a_channel
from tests.fakes.telegram.server import FakeTelegram, serving
from tests.fakes.telegram.state import Chat, User
from tests.fakes.telegram.world import World


@pytest.fixture
def clock() -> Callable[[], float]:
    return HandClock()


@pytest.fixture
async def fake(clock: Callable[[], float]) -> AsyncIterator[FakeTelegram]:
    async with serving(World(clock=clock)) as running:
        yield running


@pytest.fixture
def world(fake: FakeTelegram) -> World:
    return fake.world


@pytest.fixture
def ann(world: World) -> User:
    return world.user("Ann", "ann")


@pytest.fixture
def chat(world: World, ann: User) -> Chat:
    """Where Ann is alone with the bot."""
    return world.private_chat(ann)


@pytest.fixture
async def channel(fake: FakeTelegram, tmp_path: Path) -> AsyncIterator[TelegramChannel]:
    """The channel of the fake's bot, without limits of its own."""
    async with a_channel(fake, home=tmp_path) as made:
        yield made


@pytest.fixture
async def bot(fake: FakeTelegram) -> AsyncIterator[Bot]:
    async with bot_at(fake) as made:
        yield made
