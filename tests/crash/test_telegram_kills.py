"""Kills in the moments after the platform has handed a message over."""

import random
from pathlib import Path

import pytest
from anyio import move_on_after, sleep_forever

from tests.harness.invariants import check_rows
from tests.harness.polling import until
from tests.harness.tally import ROUND, WANTS_ALL, add_to_tally
from tests.harness.telegram import Bot, a_bot

SEED = 20_261_116 + 1_000 * ROUND
KILLS = 10
"""In each portion; all portions together share the time out evenly."""
PORTIONS = range(10)
WITHIN_S = 0.2


def moments(portion: int) -> list[float]:
    """Spread over the whole time, each one somewhere in its share of it, in any order."""
    chance = random.Random(SEED + portion)
    share = WITHIN_S / (KILLS * len(PORTIONS))
    shares = range(portion, KILLS * len(PORTIONS), len(PORTIONS))
    spread = [share * (number + chance.random()) for number in shares]
    chance.shuffle(spread)
    return spread


async def handed_over(bot: Bot, update_id: int) -> None:
    """Wait until the platform has answered with the update."""

    def look() -> bool:
        return any(update_id in (each.result or ()) for each in bot.requests("getUpdates"))

    await until(look, "the update is handed over", otherwise=lambda: bot.gateway.log[-2000:])


async def passes(seconds: float) -> None:
    with move_on_after(seconds):
        await sleep_forever()


@pytest.mark.parametrize("portion", PORTIONS if WANTS_ALL else PORTIONS[:1])
async def test_killed_just_after_a_message_was_handed_over(home: Path, portion: int) -> None:
    """S1, S97, S145, S146: none is lost, and none is answered twice."""
    print(f"seed {SEED + portion}")
    async with a_bot(home) as bot:
        bot.start()
        for number, moment in enumerate(moments(portion)):
            bot.say(f"echo word{number}.")
            await handed_over(bot, max(bot.world.updates.told))
            await passes(moment)
            bot.gateway.kill()
            bot.start()
        await until(
            lambda: all(bot.world.copies(f"word{number}.") for number in range(KILLS)),
            "every message is answered",
            otherwise=lambda: f"{bot.said()}\n{bot.gateway.log[-3000:]}",
        )
        rows = await bot.comes_to_rest()

        copies = [len(bot.world.copies(f"word{number}.")) for number in range(KILLS)]
        assert copies == [1] * KILLS
        # What two lives have taken in may be answered together; a label stands above its words.
        said = [each.splitlines()[-1] for each in "\n\n".join(bot.said()).split("\n\n")]
        assert said == [f"word{number}." for number in range(KILLS)]
        assert not bot.fake.history.recorded("editMessageReplyMarkup"), "nothing was altered"
        assert not bot.fake.history.asked_to_drop()
        check_rows(rows)
        add_to_tally("platform kills", {"platform": "telegram", "kills": KILLS})
