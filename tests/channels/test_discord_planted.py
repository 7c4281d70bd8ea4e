"""The tests of receiving from Discord find the mistakes that they are there for.

Each mistake is planted into the code, and a life of the bot that ends in the middle of a catch-up
must show it: a message is lost.
"""

from collections.abc import Callable

import pytest

from koboshi.channels.discord import gateway as gateway_module
from koboshi.channels.discord.catching_up import ChannelHistories
from koboshi.channels.discord.events import EventIntake
from tests.channels.discord_rig import Bot
from tests.channels.fakes import until
from tests.fakes.discord.server import FakeDiscord, serving_discord

Plant = Callable[[pytest.MonkeyPatch], None]


async def stored_after_a_kill(fake: FakeDiscord) -> list[str]:
    """What is stored of two channels in the end. One of them was written to while we were down. A
    life that could not read its history yet heard more of both, and was killed."""
    world, bot = fake.world, Bot(fake)
    guild, ann = world.guild(), world.user("Ann")
    place, other = world.text_channel(guild), world.text_channel(guild)
    to_us = f"<@{world.bot.user_id}>"
    world.forward(2)
    async with bot.connected():
        await bot.is_whole()
    bot.forget_session()
    world.say(place, ann, f"{to_us} missed")
    slow = fake.faults.add("hang", "getMessages", count=None)
    async with bot.connected():
        await until(lambda: slow.hits)
        world.say(place, ann, f"{to_us} live")
        world.say(other, ann, f"{to_us} elsewhere")
        await bot.stores("elsewhere")
    fake.faults.lift_all()
    async with bot.connected():
        world.say(other, ann, f"{to_us} last")
        await bot.stores("last")
        await bot.is_whole()
    return sorted(bot.texts)


async def test_without_a_mistake_all_is_stored() -> None:
    async with serving_discord() as fake:
        assert await stored_after_a_kill(fake) == ["elsewhere", "last", "live", "missed"]


def live_events_are_not_held(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChannelHistories, "is_behind", lambda *_: False)


def the_session_is_stored_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EventIntake, "is_whole", property(lambda self: self.place.is_known))


@pytest.mark.parametrize("plant", [live_events_are_not_held, the_session_is_stored_at_once])
async def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    async with serving_discord() as fake:
        assert "missed" not in await stored_after_a_kill(fake)


async def test_a_close_that_ends_the_session_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_module, "STAYS", 1000)
    async with serving_discord() as fake:
        bot = Bot(fake)
        async with bot.connected():
            await bot.is_whole()
        await until(lambda: fake.gateway.closes)
        async with bot.connected():
            await until(lambda: fake.gateway.sessions.refused)
