"""A topic for a schedule: asked for once, and told of by the platform."""

import pytest

from koboshi.channels.telegram.channel import TelegramChannel
from koboshi.domain.outbox import Delivery, Later, Refused, SendOutcome, Sent, Unsure
from tests.channels.telegram_bot import Bot
from tests.channels.telegram_rig import a_channel, owed, route_of
from tests.fakes.telegram.server import FakeTelegram, serving
from tests.fakes.telegram.state import Chat
from tests.fakes.telegram.world import World
from tests.harness.telegram_updates import ANN, FORUM, PRIVATE, US, message, read, update


def beginning(chat: Chat) -> Delivery:
    return owed(route_of(chat), "news (c3)", cause="thread:3", turn_id=None)


async def begin(channel: TelegramChannel, chat: Chat) -> SendOutcome:
    return await channel.send(beginning(chat))


async def test_a_thread_begins_with_a_topic_of_the_schedules_name(fake: FakeTelegram) -> None:
    forum = fake.world.supergroup(forum=True)
    async with a_channel(fake) as channel:
        outcome = await begin(channel, forum)
    (topic,) = forum.topics.values()
    assert topic.name == "news (c3)"
    assert outcome == Sent(platform_id=str(topic.topic_id))
    assert fake.world.messages_seen(forum) == [], "a topic, and no message beside it"


async def test_in_private_there_are_topics_where_the_bot_has_them() -> None:
    async with serving(World(has_topics_enabled=True)) as fake, a_channel(fake) as channel:
        chat = fake.world.private_chat()
        assert isinstance(await begin(channel, chat), Sent)
        assert [topic.name for topic in chat.topics.values()] == ["news (c3)"]


@pytest.mark.parametrize("kind", ["private", "group", "supergroup"])
async def test_without_topics_it_is_refused_and_says_what_to_do(
    fake: FakeTelegram, kind: str
) -> None:
    world = fake.world
    chats = {
        "private": world.private_chat(),
        "group": world.group(),
        "supergroup": world.supergroup(),
    }
    async with a_channel(fake) as channel:
        outcome = await begin(channel, chats[kind])
    assert isinstance(outcome, Refused)
    assert outcome.reason.startswith("topics are off in this chat; turn them on")
    assert ("BotFather" in outcome.reason) is (kind == "private")


async def test_without_the_right_it_is_refused_and_names_the_right(fake: FakeTelegram) -> None:
    forum = fake.world.supergroup(forum=True)
    forum.can_make_topics = False
    async with a_channel(fake) as channel:
        outcome = await begin(channel, forum)
    assert isinstance(outcome, Refused)
    assert "manage topics" in outcome.reason
    assert not forum.topics


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_answer_that_is_lost_leaves_the_outcome_unknown(
    fake: FakeTelegram, moment: str
) -> None:
    forum = fake.world.supergroup(forum=True)
    fake.faults.add("drop", "createForumTopic", moment=moment)
    async with a_channel(fake) as channel:
        assert isinstance(await begin(channel, forum), Unsure)
    assert len(fake.history.of("createForumTopic")) == 1
    assert len(forum.topics) == (moment == "after")


async def test_a_platform_that_wants_a_pause_has_certainly_not_made_it(fake: FakeTelegram) -> None:
    forum = fake.world.supergroup(forum=True)
    fake.faults.add("too_many", "createForumTopic", seconds=3)
    async with a_channel(fake) as channel:
        assert isinstance(await begin(channel, forum), Later)


@pytest.mark.parametrize("chat", [FORUM, PRIVATE])
def test_the_platform_tells_of_the_topics_that_we_have_made(chat: dict[str, object]) -> None:
    made = message(
        "",
        chat,
        message_id=42,
        message_thread_id=42,
        is_topic_message=True,
        forum_topic_created={"name": "news (c3)", "icon_color": 7322096},
        **{"from": US},
    )
    found = read(update(5, message=made)).inbound
    assert (found.begins, found.route.thread, found.ignored) == ("news (c3)", "42", "topic-made")


def test_topics_of_people_are_not_ours_whatever_they_are_called() -> None:
    made = message(
        "",
        FORUM,
        message_id=42,
        message_thread_id=42,
        is_topic_message=True,
        forum_topic_created={"name": "news (c3)", "icon_color": 7322096},
        **{"from": ANN},
    )
    found = read(update(5, message=made)).inbound
    assert (found.begins, found.ignored) == ("", "nothing-said")


async def test_the_fake_tells_the_bot_of_the_topics_that_it_made(bot: Bot, world: World) -> None:
    """As the server of the Bot API does, which passes over other messages of the bot's own."""
    forum = world.supergroup(forum=True)
    made = await bot.do("createForumTopic", chat_id=forum.chat_id, name=" two\n words " + "x" * 200)
    assert made["name"].startswith("two words xxx")
    assert len(made["name"]) == 128
    (told,) = await bot.do("getUpdates")
    assert told["message"]["forum_topic_created"]["name"] == made["name"]
    assert told["message"]["from"]["id"] == world.bot.user_id
    assert told["message"]["message_thread_id"] == made["message_thread_id"]
    refusal = await bot.refusal("createForumTopic", chat_id=forum.chat_id, name=" ")
    assert refusal == "Bad Request: name must be non-empty"
    forum.can_make_topics = False
    refusal = await bot.refusal("createForumTopic", chat_id=forum.chat_id, name="more")
    assert refusal == "Bad Request: not enough rights to create a topic"
