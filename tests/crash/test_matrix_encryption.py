"""Encrypted rooms of Matrix with real kills: keys and commits never lose words."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from anyio import move_on_after, sleep_forever, to_thread

from tests.cli.process import koboshi
from tests.harness.encrypted import Secretive, a_secretive
from tests.harness.invariants import check_rows
from tests.harness.matrix import SECTION, MatrixBot, a_matrix_bot
from tests.harness.polling import until
from tests.harness.rows import glance
from tests.harness.synapse import shared_homeserver
from tests.harness.tally import WANTS_ALL
from tests.harness.telegram_words import LABEL

POINTS = (
    "inbox.accept:before",  # the keys are stored, the place and the words are not
    "outbox.settle:before",  # the homeserver has the answer, and we do not know
    "inbox.accept:after",
    "outbox.claim:before",
    "outbox.claim:after",
    "turns.answer:after",
    "outbox.settle:after",
)
FIRST_POINTS = ("before", "after")
"""Around the commit that says which device we are, before others are told of it."""
SEED = 20_261_118
KILLS = 6 if WANTS_ALL else 2
PORTIONS = range(5)
KILLED_WITHIN_S = 1.5


@dataclass(slots=True)
class EncryptedBot:
    bot: MatrixBot
    ann: Secretive
    room: str

    async def first_life(self) -> None:
        """Connect once: others know our device now."""
        self.bot.start()
        await self.bot.is_connected()
        self.bot.gateway.kill()
        await self.knows_device()

    async def knows_device(self) -> None:
        await self.ann.knows(self.room, self.bot.bot.user)

    async def hears(self, text: str) -> None:
        try:
            await self.ann.hears(self.room, text, self.bot.bot.user)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.bot.gateway.log[-3000:]}") from None

    async def said(self) -> list[str]:
        await self.ann.sync()
        assert not self.ann.unreadable(self.room), "the person cannot read all of it"
        return self.ann.said_by(self.room, self.bot.bot.user)


@asynccontextmanager
async def an_encrypted_bot(home: Path) -> AsyncIterator[EncryptedBot]:
    settings = {f"{SECTION}ENCRYPTION": "true"}
    async with (
        a_matrix_bot(home, shared_homeserver(), env=settings) as bot,
        a_secretive(bot.ann) as ann,
    ):
        room = await ann.encrypted_room(bot.bot.user)
        await bot.bot.join(room)
        yield EncryptedBot(bot, ann, room)


@pytest.mark.parametrize("point", POINTS if WANTS_ALL else POINTS[:2])
async def test_killed_at_a_durable_step_it_answers_once(home: Path, point: str) -> None:
    async with an_encrypted_bot(home) as made:
        await made.first_life()
        await made.ann.say(made.room, "echo once")
        made.bot.start(crash_at=point)
        await made.bot.dies()
        made.bot.start()
        await made.hears("once")
        await made.bot.comes_to_rest(1)

        assert await made.said() == ["once"]
        seen = [each["content"] for each in await made.ann.person.events(made.room)]
        assert "once" not in str(seen), "the homeserver cannot read it"


@pytest.mark.parametrize("point", FIRST_POINTS if WANTS_ALL else FIRST_POINTS[1:])
async def test_killed_while_it_becomes_a_device_it_becomes_the_same_one(
    home: Path, point: str
) -> None:
    async with an_encrypted_bot(home) as made:
        made.bot.start(crash_at=f"inbox.accept:{point}")
        await made.bot.dies()
        await made.first_life()
        await made.ann.say(made.room, "echo hello")
        made.bot.start()
        await made.hears("hello")


@pytest.mark.parametrize("portion", PORTIONS if WANTS_ALL else PORTIONS[:1])
async def test_killed_at_any_moment_around_a_message(home: Path, portion: int) -> None:
    print(f"seed {SEED + portion}")
    chance = random.Random(SEED + portion)
    async with an_encrypted_bot(home) as made:
        await made.first_life()
        made.bot.start()
        for number in range(KILLS):
            await made.ann.say(made.room, f"echo word{number}.")
            with move_on_after(chance.random() * KILLED_WITHIN_S):
                await sleep_forever()
            made.bot.gateway.kill()
            made.bot.start()
        rows = await made.bot.comes_to_rest(KILLS)

        said = "\n".join(await made.said())
        assert [said.count(f"word{number}.") for number in range(KILLS)] == [1] * KILLS
        assert LABEL not in said
        check_rows(rows)


async def test_a_restored_home_is_down_until_it_is_a_new_device(home: Path) -> None:
    async with an_encrypted_bot(home) as made:
        await made.first_life()
        settings = made.bot.gateway.environment
        file = home.parent / "saved.db"
        for command in (("backup", "create", "--to", str(file)), ("restore", str(file))):
            ended = await to_thread.run_sync(partial(koboshi, *command, home=home))
            assert ended.code == 0, ended
        made.bot.start()
        await until(
            lambda: "this home was restored: log in again" in made.bot.gateway.log,
            "the channel is down, with the remedy",
            otherwise=lambda: made.bot.gateway.log[-3000:],
        )
        made.bot.gateway.kill()

        made.bot.bot = await made.bot.bot.log_in_again()
        new_token = {**settings, f"{SECTION}TOKEN": made.bot.bot.token}
        made.bot.gateway.start(env=new_token)
        await until(lambda: "matrix_connected" in made.bot.gateway.log, "it is connected")
        await made.knows_device()
        await made.ann.say(made.room, "echo again")
        await made.hears("again")
        assert len(glance(home).inbox) == 1
