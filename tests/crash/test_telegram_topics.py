"""A schedule with a topic of its own, with the real gateway and real kills: never a second one."""

from pathlib import Path

import pytest

from tests.fakes.telegram.state import Chat, Topic
from tests.fakes.telegram.world import World
from tests.harness.polling import until
from tests.harness.tally import WANTS_ALL
from tests.harness.telegram import Bot, a_bot

ORDER = "/cron add thread every 1 hour echo the news"


def topics_of(bot: Bot, chat: Chat) -> list[Topic]:
    return list(chat.topics.values())


async def ordered(bot: Bot, chat: Chat) -> None:
    """A schedule is made, and carried out now."""
    bot.say(ORDER, chat)
    await bot.hears("c1", chat)
    bot.say("/cron run c1", chat)


async def says_in(bot: Bot, chat: Chat, topic: Topic, count: int) -> None:
    await until(
        lambda: (
            len([each for each in bot.said(chat, topic.topic_id) if each == "the news"]) == count
        ),
        "the news are told in the topic",
        otherwise=lambda: f"{bot.said(chat)}\n{bot.gateway.log[-3000:]}",
    )


async def test_it_works_in_its_topic_and_people_answer_there(home: Path) -> None:
    async with a_bot(home) as bot:
        forum = bot.world.supergroup(forum=True)
        bot.start()
        await ordered(bot, forum)
        (topic,) = await until(lambda: topics_of(bot, forum), "the topic is made")
        await says_in(bot, forum, topic, 1)
        bot.restart()
        bot.say("@koboshi_bot echo and more", forum, topic=topic)
        await bot.hears("and more", forum)
        bot.say("/cron run c1", forum)
        await says_in(bot, forum, topic, 2)
        await bot.comes_to_rest()

        assert len(bot.requests("createForumTopic")) == 1


@pytest.mark.parametrize("is_private", [False, True])
async def test_killed_when_the_platform_has_made_it_and_we_do_not_know(
    home: Path, is_private: bool
) -> None:
    """The platform's own message about the topic settles it."""
    async with a_bot(home, world=World(has_topics_enabled=True)) as bot:
        chat = bot.chat if is_private else bot.world.supergroup(forum=True)
        bot.fake.faults.add("hang", "createForumTopic", moment="after")
        bot.start()
        await ordered(bot, chat)
        (topic,) = await until(lambda: topics_of(bot, chat), "the topic is made")
        bot.gateway.kill()
        bot.fake.faults.lift_all()
        bot.start()
        await says_in(bot, chat, topic, 1)
        await bot.comes_to_rest()

        assert topics_of(bot, chat) == [topic]
        assert len(bot.requests("createForumTopic")) == 1


async def test_without_topics_it_works_here_and_the_remedy_is_told_once(home: Path) -> None:
    async with a_bot(home) as bot:
        bot.start()
        await ordered(bot, bot.chat)
        await bot.hears("the news")
        bot.restart()
        bot.say("/cron run c1")
        await until(lambda: bot.said().count("the news") == 2, "the news are told again")
        await bot.comes_to_rest()

        assert len([each for each in bot.said() if "BotFather" in each]) == 1
        assert len(bot.requests("createForumTopic")) == 1


@pytest.mark.skipif(not WANTS_ALL, reason="the platform is given some seconds to tell of it")
async def test_killed_when_the_platform_never_got_it(home: Path) -> None:
    """It cannot be told, so none is made a second time, and the chat hears it once."""
    async with a_bot(home) as bot:
        forum = bot.world.supergroup(forum=True)
        bot.fake.faults.add("drop", "createForumTopic", moment="before")
        bot.start()
        await ordered(bot, forum)
        await until(lambda: bot.requests("createForumTopic"), "the topic is asked for")
        bot.restart()
        await bot.hears("has no thread of its own", forum)
        await bot.hears("the news", forum)
        await bot.comes_to_rest()

        assert not topics_of(bot, forum)
        assert len(bot.requests("createForumTopic")) == 1
