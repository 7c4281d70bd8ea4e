"""Telegram with the real gateway and real kills: nothing lost, nothing twice, in its topic."""

from pathlib import Path

import pytest

from tests.harness.polling import until
from tests.harness.rows import glance
from tests.harness.telegram import a_bot
from tests.harness.telegram_words import LABEL, LONG, script


async def test_what_is_written_while_it_is_down_is_answered_after_the_start(home: Path) -> None:
    """S1, S145."""
    async with a_bot(home) as bot:
        bot.say("echo one", date=bot.world.now - 60)
        bot.say("echo two", date=bot.world.now - 60)
        bot.start()
        await bot.hears("two")
        bot.gateway.kill()
        bot.say("echo three")
        bot.start()
        await bot.hears("three")
        await bot.comes_to_rest()

        assert bot.said() == ["one\n\ntwo", "three"]
        assert not bot.fake.history.asked_to_drop()


async def test_fifty_chats_and_five_in_one_are_answered_once_after_an_absence(home: Path) -> None:
    """What is written in one chat before a start joins one turn; no word is answered twice."""
    async with a_bot(home, allow='["*"]') as bot:
        bot.start()
        bot.say("echo hello")
        await bot.hears("hello")
        bot.gateway.kill()
        people = [bot.world.user(f"Person{number}") for number in range(50)]
        chats = [bot.world.private_chat(person) for person in people]
        for number, (person, chat) in enumerate(zip(people, chats, strict=True)):
            bot.world.say(chat, person, f"echo chat{number}.")
        for number in range(5):
            bot.world.say(chats[7], people[7], f"echo mine{number}.")
        bot.start()
        for number, chat in enumerate(chats):
            await bot.hears(f"chat{number}.", chat)
        await bot.comes_to_rest()

        words = [f"chat{number}." for number in range(50)] + [f"mine{n}." for n in range(5)]
        said = "".join(text for chat in chats for text in bot.said(chat))
        assert [said.count(word) for word in words] == [1] * 55
        assert LABEL not in said


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_killed_around_the_commit_that_holds_an_update(home: Path, moment: str) -> None:
    """S1, S97: the platform is told to forget it only by the next question."""
    async with a_bot(home) as bot:
        bot.start(crash_at=f"inbox.accept:{moment}")
        bot.say("echo once")
        await bot.dies()
        assert bot.fake_waits() == 1
        bot.start()
        await bot.hears("once")
        await bot.comes_to_rest()

        assert bot.said() == ["once"]


@pytest.mark.parametrize("point", ["turns.answer:after", "outbox.claim:before"])
async def test_killed_between_the_answer_and_its_sending(home: Path, point: str) -> None:
    """S145, S146: it was certainly not sent, so it is sent as it is."""
    async with a_bot(home) as bot:
        bot.say("echo once")
        bot.start(crash_at=point)
        await bot.dies()
        bot.start()
        await bot.hears("once")
        await bot.comes_to_rest()

        assert bot.said() == ["once"]


async def test_killed_when_the_platform_has_it_and_we_do_not_know(home: Path) -> None:
    """S146: it is looked for, found, and not said again."""
    async with a_bot(home) as bot:
        bot.say("echo once")
        bot.start(crash_at="outbox.settle:before")
        await bot.dies()
        assert bot.said() == ["once"]
        bot.start()
        await bot.comes_to_rest()

        assert bot.said() == ["once"]
        (probed,) = bot.requests("editMessageReplyMarkup")
        assert "not modified" in probed.description


async def test_killed_when_the_platform_never_got_it(home: Path) -> None:
    """S146: it cannot be told, so it is said again and says so; it arrives once."""
    async with a_bot(home) as bot:
        bot.say("echo once")
        bot.start(crash_at="outbox.claim:after")
        await bot.dies()
        bot.start()
        await bot.hears("once")
        await bot.comes_to_rest()

        (said,) = bot.said()
        assert said.endswith("once")
        assert LABEL in said


async def test_in_a_supergroup_what_is_not_there_was_not_sent(home: Path) -> None:
    """S146: its messages are counted without gaps, so the end of them can be seen."""
    async with a_bot(home) as bot:
        group = bot.world.supergroup()
        bot.say("@koboshi_bot echo once", group)
        bot.start(crash_at="outbox.claim:after")
        await bot.dies()
        bot.start()
        await bot.hears("once", group)
        await bot.comes_to_rest()

        assert bot.said(group) == ["once"]


@pytest.mark.parametrize("recorded", [True, False])
async def test_a_connection_that_breaks_in_the_middle_of_a_send(home: Path, recorded: bool) -> None:
    """S146."""
    async with a_bot(home) as bot:
        moment = "after" if recorded else "before"
        bot.fake.faults.add("drop", "sendMessage", moment=moment)
        bot.start()
        bot.say("echo once")
        await bot.hears("once")
        await bot.comes_to_rest()

        (said,) = bot.said()
        assert (LABEL in said) is not recorded


async def test_killed_between_two_parts_of_a_long_answer(home: Path) -> None:
    """S145, S150: each part once, in order, in its topic, the first in answer to the question."""
    async with a_bot(home) as bot:
        forum = bot.world.supergroup(forum=True)
        topic = bot.world.topic(forum, "work", bot.ann)
        asked = bot.say(f"@koboshi_bot {script({'text': LONG})}", forum, topic=topic)
        bot.start(crash_at="outbox.claim:before:3")
        await bot.dies()
        assert len(bot.said(forum)) == 2
        bot.start()
        rows = await bot.comes_to_rest()

        said = bot.said(forum, topic.topic_id)
        assert " ".join(said).split() == LONG.split()
        assert len(said) == len(rows.outbox) >= 3
        assert bot.said(forum) == said, "nothing fell back to the general topic"
        first, *others = [each for each in bot.world.messages_seen(forum) if each.is_by_bot]
        assert first.reply_to is not None
        assert first.reply_to.message_id == asked.message_id
        assert all(part.reply_to is None for part in others)


async def test_a_button_pressed_while_it_is_down_counts_once(home: Path) -> None:
    """S140: also when it is pressed twice, and once more when it is too late."""
    async with a_bot(home) as bot:
        bot.start()
        bot.say("ask me which drink: tea, coffee or water")
        question = await bot.hears("drink")
        assert question.labels == ["tea", "coffee", "water"]
        bot.gateway.kill()
        bot.world.press(question, "coffee")
        bot.world.press(question, "coffee")
        bot.start()
        await bot.hears("coffee")
        await bot.comes_to_rest()
        before = bot.said()
        bot.world.press(question, "tea")
        await bot.hears("too late")
        await bot.comes_to_rest()

        assert len(bot.said()) == len(before) + 1
        assert len(bot.requests("answerCallbackQuery")) == 3


@pytest.mark.slow
async def test_an_hour_of_trouble_and_then_it_is_delivered_once(home: Path) -> None:
    """S148: whatever the platform answers meanwhile."""
    async with a_bot(home) as bot:
        bot.start()
        outage = bot.fake.faults.add("status", "sendMessage", status=502, count=None)
        probes = bot.fake.faults.add("status", "editMessageReplyMarkup", status=502, count=None)
        bot.say("echo once")
        await until(lambda: probes.hits >= 2, "it looks for what it sent")
        assert outage.hits == 1, "what may have arrived is not sent again before it was looked for"
        bot.restart()
        await until(lambda: probes.hits >= 3, "it looks again")
        bot.fake.faults.lift_all()
        await bot.hears("once")
        await bot.comes_to_rest()

        assert len(bot.said()) == 1


async def test_nothing_is_sent_before_the_platform_wants_it_also_after_a_kill(home: Path) -> None:
    """S148: the wait is stored."""
    async with a_bot(home) as bot:
        bot.start()
        bot.fake.faults.add("too_many", "sendMessage", seconds=3)
        bot.say("echo once")
        await until(lambda: bot.requests("sendMessage"), "it tries")
        (refused,) = bot.requests("sendMessage")
        await until(lambda: refused.status == 429, "it is told to wait")
        await until(lambda: _postponed(bot.gateway.home), "the wait is stored")
        bot.restart()
        await bot.hears("once")

        _, sent = bot.requests("sendMessage")
        assert sent.at - refused.at >= 3
        assert bot.said() == ["once"]


def _postponed(home: Path) -> bool:
    return any(row["not_before_ms"] for row in glance(home).outbox)
