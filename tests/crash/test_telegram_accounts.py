"""Another bot in the same section of the configuration, with the real gateway and real kills. Both
bots count alike: the same chat, the same numbers of updates and messages."""

from pathlib import Path

import pytest

from tests.fakes.telegram.world import BOT_ID
from tests.harness.golden import lay_out_every_state
from tests.harness.polling import until
from tests.harness.rows import read_rows
from tests.harness.telegram import a_bot, another_bot

OTHER_ID = 987654321
LABEL = "may be a duplicate"


async def test_what_people_write_to_a_new_bot_is_heard(home: Path) -> None:
    """Issue 12, A6: neither how far the first bot was read nor its numbers count for the second."""
    async with a_bot(home) as first, another_bot(first, OTHER_ID) as second:
        for words in ("echo one", "echo two"):
            first.say(words, date=first.world.now - 60)
        first.start()
        await first.hears("two")
        await first.comes_to_rest()
        first.gateway.kill()
        three = ("echo three", "echo four", "echo five")
        asked = [second.say(words, date=second.world.now - 60) for words in three]
        second.start()
        await second.hears("five")
        rows = await second.comes_to_rest()

        assert second.said() == ["three\n\nfour\n\nfive"]
        assert first.said() == ["one\n\ntwo"]
        keys = [row["external_id"] for row in rows.inbox]
        assert len(set(keys)) < len(keys), "the bots count alike, or nothing was tried"
        assert len(rows.sessions) == 1, "the conversation goes on"
        replied = [each.reply_to for each in second.world.messages_seen(second.chat)]
        assert [each.message_id for each in replied if each] == [asked[-1].message_id]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_killed_around_the_change_to_a_new_bot(home: Path, moment: str) -> None:
    """Issue 12, A6: the new bot hears what was written to it, once."""
    async with a_bot(home) as first, another_bot(first, OTHER_ID) as second:
        first.say("echo one")
        first.start()
        await first.hears("one")
        await first.comes_to_rest()
        first.gateway.kill()
        second.say("echo two")
        second.start(crash_at=f"inbox.bind:{moment}")
        await second.dies()
        assert not second.requests(), "no question is asked before it is stored whose numbers count"
        second.start()
        await second.hears("two")
        await second.comes_to_rest()

        assert second.said() == ["two"]


async def test_what_the_first_bot_may_have_sent_is_not_looked_for_by_the_second(home: Path) -> None:
    """Issue 12, A6: its numbers are another chat's. So it is said again, says so, and answers no
    message of the other chat."""
    async with a_bot(home) as first, another_bot(first, OTHER_ID) as second:
        first.say("echo once")
        first.start(crash_at="outbox.settle:before")
        await first.dies()
        assert first.said() == ["once"]
        for number in range(5):
            second.world.say(second.chat, second.ann, f"echo {number}")
        second.start()
        await second.hears("4")
        await second.comes_to_rest()

        assert not second.requests("editMessageReplyMarkup")
        (said,) = [each for each in second.world.messages_seen(second.chat) if "once" in each.text]
        assert LABEL in said.text
        assert said.reply_to is None


@pytest.mark.parametrize("point", ["", "inbox.bind", "inbox.connect"])
async def test_the_bot_of_an_earlier_version_goes_on(home: Path, point: str) -> None:
    """Issue 12, A6: what version 1 stored without an account is the present bot's, wherever the
    first start is killed. A second bot finds nothing of it."""
    lay_out_every_state(home)
    async with a_bot(home) as first, another_bot(first, OTHER_ID) as second:
        for moment in ("before", "after") if point else ():
            first.start(crash_at=f"{point}:{moment}")
            await first.dies()
        first.say("echo still here")
        first.start()
        await first.hears("still here")
        first.gateway.kill()
        rows = read_rows(home)
        ours = rows.of("inbox", source="telegram:main")
        assert len(ours) > 1
        assert {row["account"] for row in ours} == {str(BOT_ID)}
        assert [row["account"] for row in rows.cursors] == [str(BOT_ID)]

        second.say("echo hello")
        second.start()
        await second.hears("hello")


async def test_a_mistyped_token_takes_nothing_from_the_bot(home: Path) -> None:
    """Issue 12, A6: only a bot that Telegram knows adopts what an earlier version stored."""
    lay_out_every_state(home)
    async with a_bot(home) as bot:
        bot.gateway.start(env={"TELEGRAM_BOT_TOKEN": "555:mistyped"})
        await bot.gateway.wait_listening()
        await until(lambda: "channel_unusable" in bot.gateway.log, "it is refused")
        bot.gateway.kill()
        bot.say("echo still here")
        bot.start()
        await bot.hears("still here")
        bot.gateway.kill()

        ours = read_rows(home).of("inbox", source="telegram:main")
        assert {row["account"] for row in ours} == {str(BOT_ID)}


async def test_the_first_bot_goes_on_where_it_was(home: Path) -> None:
    """Issue 12, A6: what it had stored and not acknowledged is not taken twice."""
    async with a_bot(home) as first, another_bot(first, OTHER_ID) as second:
        first.say("echo one")
        first.start(crash_at="outbox.settle:after")
        await first.dies()
        first.world.redeliver(max(first.world.updates.told))
        second.say("echo two")
        second.start()
        await second.hears("two")
        await second.comes_to_rest()
        second.gateway.kill()
        first.say("echo three")
        first.start()
        await first.hears("three")
        await first.comes_to_rest()

        assert first.said() == ["one", "three"]
        assert second.said() == ["two"]
