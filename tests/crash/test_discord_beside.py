"""Discord in trouble or in a flood, and another channel of the same gateway beside it.

How much slower the other one gets is measured by `test_flooded.py`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from anyio import create_task_group

from tests.harness.discord import DiscordBot, a_discord_bot
from tests.harness.polling import until
from tests.harness.rows import glance
from tests.harness.tally import WANTS_ALL
from tests.harness.telegram import Bot, a_bot

EVENTS = 10_000 if WANTS_ALL else 1_000
ANSWERS = 10 if WANTS_ALL else 3


@asynccontextmanager
async def both(home: Path) -> AsyncIterator[tuple[DiscordBot, Bot]]:
    """One gateway with a bot on each platform."""
    async with (
        a_discord_bot(home) as discord,
        a_bot(home, env=discord.gateway.environment) as telegram,
    ):
        yield discord, telegram


async def test_a_flood_of_events_does_not_keep_another_channel_from_answering(home: Path) -> None:
    """And nothing of the flood is lost."""
    async with both(home) as (discord, telegram):
        telegram.start()
        await discord.is_whole()
        places = [discord.world.text_channel(discord.world.guild())]

        async def flood() -> None:
            (place,) = places
            for number in range(EVENTS):
                discord.world.say(place, discord.ann, f"number {number}")
                await until(lambda: not discord.fake.gateway.is_full, "it is taken")

        async with create_task_group() as tasks:
            tasks.start_soon(flood)
            for number in range(ANSWERS):
                telegram.say(f"echo word{number}.")
                await telegram.hears(f"word{number}.")
        newest = {str(place.channel_id): str(place.last_message_id) for place in places}
        await until(lambda: newest.items() <= _read(home).items(), "all of it was read")
        discord.say("echo at last")
        await discord.hears("at last")


@pytest.mark.parametrize("trouble", ["silent", "hanging", "gone"])
async def test_a_platform_in_trouble_leaves_the_other_alone(home: Path, trouble: str) -> None:
    async with both(home) as (discord, telegram):
        match trouble:
            case "silent":
                discord.fake.gateway.is_silent = True
            case "hanging":
                discord.fake.faults.outage("hang")
            case _:
                await discord.fake.stop()
        telegram.start()
        telegram.say("echo once")
        await telegram.hears("once")

        assert telegram.said() == ["once"]
        assert not glance(home).watermarks or trouble == "silent"
        if trouble == "gone":
            await discord.fake.start()


def _read(home: Path) -> dict[str, str]:
    """How far each channel of Discord was read."""
    return {row["chat"]: row["token"] for row in glance(home).watermarks}
