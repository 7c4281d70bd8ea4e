"""Answers and a platform, a clock or a person that gets in their way, with the real gateway."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from tests.harness.client import Client
from tests.harness.moved_clock import Wall
from tests.harness.polling import until
from tests.harness.rows import read_rows
from tests.harness.telegram import Bot, a_bot
from tests.harness.telegram_words import LABEL, LONG, script

DAY_S = 86_400
IN_FLIGHT_MAX = 32
ENDLESS = "\n\n".join(f"Paragraph {number} " + "word " * 180 for number in range(60))


def of_moved_clock(home: Path, wall: Wall) -> Sequence[str]:
    return [*wall.command, "run", "--home", str(home)]


def long_answer(bot: Bot) -> str:
    """The long answer as it was seen, without labels."""
    return "".join(_words(each) for each in bot.said() if "Paragraph" in each)


def _words(text: str) -> str:
    return text.partition(LABEL)[2].partition("\n")[2] if LABEL in text else text


async def test_an_answer_survives_two_troubles_of_the_platform(home: Path) -> None:
    """Issue 12, A1: a 502 and a reset in a private chat, for the second of several parts. It was
    abandoned after two attempts, and the turn was done."""
    async with a_bot(home) as bot:
        bot.fake.faults.add("status", "sendMessage", skip=1, status=502)
        bot.fake.faults.add("drop", "sendMessage", skip=1)
        bot.start()
        bot.say(script({"text": LONG}))
        rows = await bot.comes_to_rest()

        assert {row["state"] for row in rows.outbox} == {"delivered"}
        for number in range(12):
            assert sum(f"Paragraph {number} " in each for each in bot.said()) == 1
        numbers = [word for word in long_answer(bot).split() if word.isdecimal()]
        assert numbers == [str(number) for number in range(12)]
        assert sum(LABEL in each for each in bot.said()) == 1


async def test_a_platform_that_hangs_does_not_delay_the_web_channel(home: Path) -> None:
    """Issue 12, B9: one limit for all channels made a web answer wait for 30 s."""
    async with a_bot(home, allow='["*"]') as bot:
        hang = bot.fake.faults.add("hang", "sendMessage", count=None)
        bot.start()
        people = [bot.world.user(f"Person {number}") for number in range(IN_FLIGHT_MAX + 4)]
        for person in people:
            bot.world.say(bot.world.private_chat(person), person, "echo hello")
        await until(lambda: hang.hits >= IN_FLIGHT_MAX, "every send of Telegram hangs")
        client = Client(bot.gateway, "room")
        await client.say("echo quick", "k1")
        await until(lambda: _is_delivered(home, "quick"), "the web channel answers")

        assert hang.hits == IN_FLIGHT_MAX, "it waited for Telegram"
        hang.lift()


def _is_delivered(home: Path, text: str) -> bool:
    return bool(read_rows(home).of("outbox", text=text, state="delivered"))


@pytest.mark.parametrize("moment", ["running", "down", "killed"])
@pytest.mark.parametrize("days", [-1, 1, -365, 365])
async def test_no_jump_of_the_clock_silences_a_chat_or_expires_its_answer(
    home: Path, tmp_path: Path, moment: str, days: int
) -> None:
    """Issue 12, A5: a clock set back by a day silenced a chat for a day, and one set forward made
    deliveries too old. The clock jumps while the gateway runs, while it is down, and right
    before it is killed."""
    wall = Wall(tmp_path / "ahead")
    command = of_moved_clock(home, wall)
    async with a_bot(home, env=wall.environment, command=command) as bot:
        quiet = bot.fake.faults.add("too_many", "sendMessage", seconds=4)
        bot.start()
        bot.say("echo once")
        await until(lambda: _is_postponed(home), "the platform wants quiet")
        if moment == "down":
            bot.gateway.kill()
        wall.move(seconds=days * DAY_S)
        if moment == "killed":
            bot.gateway.kill()
        if moment != "running":
            bot.start()
        await bot.hears("once")
        rows = await bot.comes_to_rest()

        assert quiet.hits == 1
        assert bot.said() == ["once"]
        assert [row["state"] for row in rows.outbox] == ["delivered"]


def _is_postponed(home: Path) -> bool:
    return any(row["not_before_ms"] > 0 for row in read_rows(home).outbox)


async def test_a_stop_ends_a_long_answer_that_is_going_out(home: Path) -> None:
    """Issue 12, B15: the part that is being sent arrives, the reply is next, nothing follows."""
    async with a_bot(home) as bot:
        hang = bot.fake.faults.add("hang", "sendMessage", skip=1)
        bot.start()
        bot.say(script({"text": LONG}))
        await until(lambda: hang.hits, "the second part is on its way")
        bot.say("/stop")
        await until(lambda: read_rows(home).of("inbox", kind="command"), "the stop is stored")
        hang.lift()
        rows = await bot.comes_to_rest()

        *parts, reply = bot.said()
        assert len(parts) == 2
        assert reply.startswith("Stopped: ")
        assert "of my answer" in reply
        assert [turn["state"] for turn in rows.turns] == ["done"]


@pytest.mark.parametrize("point", ["", "turns.answer:before", "turns.answer:after"])
async def test_an_endless_answer_is_its_first_parts_and_a_file(home: Path, point: str) -> None:
    """Issue 12, B15: and a kill around the commit that owes it neither loses nor doubles it."""
    async with a_bot(home) as bot:
        bot.start(crash_at=point)
        bot.say(script({"text": ENDLESS}))
        if point:
            await bot.dies()
            bot.start()
        await bot.hears("The whole of it is in this file")
        await bot.comes_to_rest()

        assert len(bot.said()) == 8
        (document,) = bot.fake.history.recorded("sendDocument")
        size = len(ENDLESS.encode())
        assert document.params["document"] == {"name": "answer.md", "size": size}
        assert len(list((home / "files").iterdir())) == 1


async def test_what_is_owed_goes_out_when_the_platform_can_be_reached_again(home: Path) -> None:
    """Issue 12, B14: and not when the pause of a delivery is over."""
    async with a_bot(home) as bot:
        bot.start()
        bot.say(script({"text": "once", "sleep_ms": 1_500}))
        await until(lambda: read_rows(home).of("turns", state="running"), "it works")
        await bot.fake.stop()
        await until(lambda: _is_postponed(home), "it could not be sent")
        bot.gateway.kill()
        _wait_longer(home, ms=3_600_000)
        bot.start()
        await until(lambda: "channel_failed" in bot.gateway.log, "the platform is not there")
        assert bot.said() == []
        await bot.fake.start()
        await bot.hears("once")
        await bot.comes_to_rest()

        assert bot.said() == ["once"]


def _wait_longer(home: Path, *, ms: int) -> None:
    """As if it had failed for so long that its pause has become this long."""
    with closing(apsw.Connection(str(home / "koboshi.db"))) as database:
        database.execute(
            "UPDATE outbox SET not_before_ms = not_before_ms + ?, wait_ms = wait_ms + ?", (ms, ms)
        )
