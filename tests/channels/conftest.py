"""What the tests of channels share: the fake Telegram, people in it, and a bot by hand."""

from collections.abc import AsyncIterator

import pytest

from tests.channels.telegram_bot import Bot, HandClock, bot_at
from tests.fakes.telegram.server import FakeTelegram, serving
from tests.fakes.telegram.world import World


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def fake(clock: HandClock) -> AsyncIterator[FakeTelegram]:
    async with serving(World(clock=clock)) as running:
        yield running


@pytest.fixture
def world(fake: FakeTelegram) -> World:
    return fake.world


@pytest.fixture
async def bot(fake: FakeTelegram) -> AsyncIterator[Bot]:
    async with bot_at(fake) as made:
        yield made
