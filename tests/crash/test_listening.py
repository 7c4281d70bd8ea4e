"""A group in which the agent hears everything, with the real gateway and real kills."""

from pathlib import Path

import pytest

from tests.harness.telegram import SECTION, a_bot


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_what_an_owner_sets_is_there_after_a_kill(home: Path, moment: str) -> None:
    """Issue 13, B14: killed around the commit that holds the command."""
    async with a_bot(home) as bot:
        room = bot.fake.world.group("Friends")
        bot.say("echo not for you", room)
        bot.start()
        bot.say("echo hello")
        await bot.hears("hello")
        bot.gateway.kill()
        bot.start(crash_at=f"inbox.accept:{moment}")
        bot.say("/listen all", room)
        await bot.dies()
        bot.start()
        await bot.hears("every message", room)
        bot.say("echo for all", room)
        await bot.hears("for all", room)
        await bot.comes_to_rest()

        assert not [words for words in bot.said(room) if "not for you" in words]
        assert bot.said(room).count("for all") == 1


async def test_the_configuration_lets_it_hear_every_group(home: Path) -> None:
    """Issue 13, B14: of people who may use the gateway, and of no other."""
    async with a_bot(home, env={f"{SECTION}GROUPS": "all"}) as bot:
        room = bot.fake.world.group("Friends")
        eve = bot.fake.world.user("Eve", "eve")
        bot.start()
        bot.world.say(room, eve, "echo from eve")
        bot.say("echo from ann", room)
        await bot.hears("from ann", room)
        await bot.comes_to_rest()

        assert bot.said(room) == ["from ann"]
