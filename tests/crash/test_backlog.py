"""What people wrote while the gateway was down: a real gateway, a bot, a model, real kills."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from koboshi.domain.notes import backlog
from tests.fakes.model_servers.server import ModelServer, serving
from tests.harness.invariants import check_rows
from tests.harness.modelled import KEY_VARIABLE, configure, words_in
from tests.harness.rows import Rows, glance
from tests.harness.telegram import Bot, a_bot
from tests.models.asking import KEY
from tests.models.forms import OPENAI

THREE = ("delete the backups", "and the logs", "never mind")
ANSWER = "I have not touched anything."


@asynccontextmanager
async def a_modelled_bot(home: Path) -> AsyncIterator[tuple[Bot, ModelServer]]:
    async with serving(OPENAI.complain) as server:
        server.answer_to = lambda _: OPENAI.text(ANSWER)
        configure(home, OPENAI, server)
        async with a_bot(home, env={KEY_VARIABLE: KEY}) as bot:
            yield bot, server


def is_shown(server: ModelServer) -> list[bool]:
    """Whether each request showed the model all messages in order, and then the note."""
    parts = (*THREE, backlog(3))
    found = []
    for request in server.requests:
        words = words_in(request.body)
        places = [words.find(part) for part in parts]
        is_once = all(words.count(part) == 1 for part in parts)
        found.append(is_once and places == sorted(places))
    return found


def turns_of(rows: Rows) -> list[int | None]:
    return [row["turn_id"] for row in rows.inbox]


async def test_three_messages_of_a_backlog_have_one_answer(home: Path) -> None:
    """Issue 13, B10: anchored to the newest, and the model is shown all of them at once."""
    async with a_modelled_bot(home) as (bot, server):
        *_, newest = [bot.say(text, date=bot.world.now - 60) for text in THREE]
        bot.start()
        answer = await bot.hears(ANSWER)
        rows = await bot.comes_to_rest()

        assert bot.said() == [ANSWER]
        assert answer.reply_to is not None
        assert answer.reply_to.message_id == newest.message_id
        assert is_shown(server) == [True]
        assert turns_of(rows) == [1, 1, 1]
        check_rows(rows)


@pytest.mark.parametrize(
    "points,heard",
    [
        (["inbox.accept:before"], []),
        (["inbox.accept:after"], [1, None, None]),
        (["inbox.accept:after", "turns.claim:before"], [1, None, None]),
        (["inbox.accept:after", "turns.claim:after"], [1, 1, 1]),
        (["turns.answer:before"], [1, 1, 1]),
        (["turns.answer:after"], [1, 1, 1]),
    ],
    ids=lambda value: value[-1] if value and isinstance(value[-1], str) else "",
)
async def test_killed_around_the_claim_it_is_still_one_answer(
    home: Path, points: list[str], heard: list[int | None]
) -> None:
    """Issue 13, B10: before the commit of the claim nothing has joined, and behind it all have."""
    async with a_modelled_bot(home) as (bot, server):
        *_, newest = [bot.say(text, date=bot.world.now - 60) for text in THREE]
        for point in points:
            bot.start(crash_at=point)
            await bot.dies()
        assert turns_of(glance(home)) == heard
        bot.start()
        answer = await bot.hears(ANSWER)
        rows = await bot.comes_to_rest()

        assert bot.said() == [ANSWER]
        assert answer.reply_to is not None
        assert answer.reply_to.message_id == newest.message_id
        assert all(is_shown(server))
        assert turns_of(rows) == [1, 1, 1]
        check_rows(rows)


async def test_what_is_written_to_a_gateway_that_works_is_answered_one_by_one(home: Path) -> None:
    """Issue 13, B10: the exception is for a backlog alone."""
    async with a_bot(home) as bot:
        bot.start()
        bot.say("count to 2 slowly")
        await bot.gateway.wait_ready()
        bot.say("echo one")
        bot.say("echo two")
        await bot.hears("two")
        rows = await bot.comes_to_rest()

        assert bot.said()[-2:] == ["one", "two"]
        assert turns_of(rows) == [1, 2, 3]
