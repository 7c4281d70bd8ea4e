"""Kills in the moments after the platform has told of a message, short and long absences mixed."""

import random
from pathlib import Path

import pytest
from anyio import move_on_after, sleep_forever

from tests.harness.discord import a_discord_bot
from tests.harness.invariants import check_rows
from tests.harness.polling import until
from tests.harness.tally import ROUND, WANTS_ALL, add_to_tally

SEED = 20_261_118 + 1_000 * ROUND
KILLS = 20 if WANTS_ALL else 5
PORTIONS = range(10)
WITHIN_S = 0.2


@pytest.mark.parametrize("portion", PORTIONS if WANTS_ALL else PORTIONS[:1])
async def test_killed_just_after_an_event(home: Path, portion: int) -> None:
    """S1, S97, S145, S146: none is lost, and none is answered twice or with a label."""
    chance = random.Random(SEED + portion)
    print(f"seed {SEED + portion}")
    async with a_discord_bot(home) as bot:
        place = bot.world.text_channel(bot.world.guild())
        bot.start()
        await bot.is_whole()
        for number in range(KILLS):
            bot.say(f"echo word{number}.", chance.choice([None, place]))
            await until(lambda: bot.fake.gateway.links, "it is connected")
            with move_on_after(WITHIN_S * chance.random()):
                await sleep_forever()
            bot.gateway.kill()
            if chance.random() < 0.3:
                await bot.outlast_session()
            bot.start()
        await until(
            lambda: all(bot.world.copies(f"word{number}.") for number in range(KILLS)),
            "every message is answered",
            otherwise=lambda: f"{bot.said()}\n{bot.gateway.log[-3000:]}",
        )
        rows = await bot.comes_to_rest()

        copies = [len(bot.world.copies(f"word{number}.")) for number in range(KILLS)]
        assert copies == [1] * KILLS
        check_rows(rows)
        add_to_tally("platform kills", {"platform": "discord", "kills": KILLS})
