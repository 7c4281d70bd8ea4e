"""The fake platform keeps the contract of the Bot API: updates, how they are told and forgotten."""

from asyncio import StreamReader, StreamWriter, start_server
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from anyio import create_task_group

from tests.channels.telegram_bot import Bot, HandClock
from tests.fakes.telegram.server import FakeTelegram
from tests.fakes.telegram.world import World
from tests.harness.http import connection
from tests.harness.polling import until

DAY_S = 24 * 3600


def texts(updates: list[dict[str, Any]]) -> list[str]:
    return [each["message"]["text"] for each in updates]


def say(world: World, *words: str) -> None:
    chat = world.private_chat(world.user())
    for each in words:
        world.say(chat, chat.user, each)


async def test_only_an_offset_above_it_forgets_an_update(bot: Bot, world: World) -> None:
    say(world, "one", "two", "three")

    first = await bot.do("getUpdates")
    again = await bot.do("getUpdates", offset=first[0]["update_id"])
    rest = await bot.do("getUpdates", offset=first[0]["update_id"] + 1, limit=1)

    assert texts(first) == texts(again) == ["one", "two", "three"]
    assert texts(rest) == ["two"]
    assert texts(await bot.do("getUpdates")) == ["two", "three"]
    assert world.updates.acknowledged == [first[0]["update_id"]]


async def test_a_negative_offset_counts_from_the_end_and_drops_the_rest(
    bot: Bot, world: World
) -> None:
    say(world, "one", "two", "three")

    assert texts(await bot.do("getUpdates", offset=-1)) == ["three"]
    assert texts(await bot.do("getUpdates")) == ["three"]
    assert len(world.updates.dropped) == 2


async def test_an_offset_from_before_new_numbers_acknowledges_nothing(
    bot: Bot, world: World
) -> None:
    say(world, "old")
    (old,) = await bot.do("getUpdates")
    after = old["update_id"] + 1
    assert await bot.do("getUpdates", offset=after) == []

    world.renumber(1_000)
    say(world, "new")

    for _ in range(2):
        told = await bot.do("getUpdates", offset=after)
        assert [each["update_id"] for each in told] == [1_000]
    assert await bot.do("getUpdates", offset=1_001) == []


async def test_a_long_poll_ends_with_the_first_update(
    fake: FakeTelegram, bot: Bot, world: World
) -> None:
    told: list[str] = []

    async def poll() -> None:
        told.extend(texts(await bot.do("getUpdates", timeout=50)))

    async with create_task_group() as tasks:
        tasks.start_soon(poll)
        await until(lambda: fake.history.of("getUpdates"), "the poll is under way")
        say(world, "news")

    assert told == ["news"]


async def test_a_second_poll_ends_the_first_with_a_conflict(fake: FakeTelegram, bot: Bot) -> None:
    ended: list[str] = []

    async def poll() -> None:
        ended.append(await bot.refusal("getUpdates", timeout=50))

    async with create_task_group() as tasks:
        tasks.start_soon(poll)
        await until(lambda: fake.history.of("getUpdates"), "the poll is under way")
        assert await bot.do("getUpdates") == []

    assert ended == [
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance"
        " is running"
    ]


async def test_a_poll_whose_client_has_gone_takes_nothing_with_it(
    fake: FakeTelegram, bot: Bot, world: World
) -> None:
    say(world, "one")
    (first,) = await bot.do("getUpdates")
    after = first["update_id"] + 1
    async with create_task_group() as tasks:
        tasks.start_soon(partial(bot.ask, "getUpdates", offset=after, timeout=50))
        await until(lambda: len(fake.history.of("getUpdates")) == 2, "the poll is under way")
        tasks.cancel_scope.cancel()
    await until(lambda: fake.history.of("getUpdates")[1].status, "the platform has noticed")

    world.redeliver(first["update_id"])

    assert texts(await bot.do("getUpdates", offset=after)) == ["one"]


async def test_a_bot_that_was_kicked_is_told_nothing(bot: Bot, world: World) -> None:
    ada = world.user()
    group = world.group()
    world.kick(group)
    world.say(group, ada, "finally alone")

    assert [sorted(each)[0] for each in await bot.do("getUpdates")] == ["my_chat_member"]


async def test_messages_are_kept_a_day_and_presses_150_seconds(
    bot: Bot, world: World, clock: HandClock
) -> None:
    chat = world.private_chat()
    markup = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}
    await bot.do("sendMessage", chat_id=chat.chat_id, text="sure?", reply_markup=markup)
    world.say(chat, chat.user, "kept")
    query = world.press(world.messages_seen(chat)[0], "Yes")

    kinds = [sorted(each)[0] for each in await bot.do("getUpdates")]
    clock.now += 151
    later = await bot.do("getUpdates")
    clock.now += DAY_S

    assert kinds == ["message", "callback_query"]
    assert texts(later) == ["kept"]
    assert await bot.do("getUpdates") == []
    assert len(world.updates.expired) == 2
    refusal = await bot.refusal("answerCallbackQuery", callback_query_id=query)
    assert refusal == (
        "Bad Request: query is too old and response timeout expired or query ID is invalid"
    )


async def test_a_press_carries_its_message_and_is_answered(bot: Bot, world: World) -> None:
    ada = world.user()
    group = world.group()
    markup = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y:1"}]]}
    await bot.do("sendMessage", chat_id=group.chat_id, text="sure?", reply_markup=markup)

    query_id = world.press(world.messages_seen(group)[0], "y:1", ada)
    query = (await bot.do("getUpdates"))[0]["callback_query"]
    await bot.do("answerCallbackQuery", callback_query_id=query["id"], text="noted")

    assert (query["id"], query["data"]) == (query_id, "y:1")
    assert query["from"]["id"] == ada.user_id
    assert query["message"]["reply_markup"] == markup
    assert world.answers[query_id]["text"] == "noted"


async def test_what_people_say_comes_with_its_marks(bot: Bot, world: World) -> None:
    ada = world.user("Ada", "ada")
    forum = world.supergroup(forum=True)
    topic = world.topic(forum, "Work", ada)
    world.say(forum, ada, "/stop@koboshi_bot", topic=topic)
    world.say(forum, ada, "😀 @koboshi_bot hello")
    edited = world.say(forum, ada, "before")
    world.edit(edited, "after")

    made, in_topic, mention, _, edit = await bot.do("getUpdates")

    assert made["message"]["forum_topic_created"]["name"] == "Work"
    assert in_topic["message"]["message_thread_id"] == topic.topic_id
    assert in_topic["message"]["reply_to_message"]["forum_topic_created"]["name"] == "Work"
    assert in_topic["message"]["entities"] == [{"type": "bot_command", "offset": 0, "length": 17}]
    assert mention["message"]["entities"] == [{"type": "mention", "offset": 3, "length": 12}]
    assert "message_thread_id" not in mention["message"]
    assert edit["edited_message"]["text"] == "after"


async def test_the_bot_is_not_told_what_it_says_itself(bot: Bot, world: World) -> None:
    chat = world.private_chat()
    await bot.do("sendMessage", chat_id=chat.chat_id, text="me")

    assert await bot.do("getUpdates") == []


async def test_only_allowed_kinds_are_told_and_the_choice_stays(bot: Bot, world: World) -> None:
    await bot.do("getUpdates", allowed_updates=["edited_message"])
    chat = world.private_chat()
    world.edit(world.say(chat, chat.user, "before"), "after")

    told = await bot.do("getUpdates")

    assert [sorted(each)[0] for each in told] == ["edited_message"]


async def test_anything_can_be_put_among_the_updates(
    fake: FakeTelegram, bot: Bot, world: World
) -> None:
    world.raw({"message": {"message_id": "not a number"}})
    world.raw({"strange": True})

    strange = await bot.do("getUpdates")
    world.raw(b'{"update_id": 5, ')
    async with connection(fake.url) as http:
        broken = await http.get(f"/bot{fake.token}/getUpdates")

    assert strange[0]["message"] == {"message_id": "not a number"}
    assert strange[1]["update_id"] == strange[0]["update_id"] + 1
    assert broken.content.endswith(b'{"update_id": 5, ]}')


async def test_an_acknowledged_update_can_be_told_again_and_in_any_order(
    bot: Bot, world: World
) -> None:
    say(world, "one", "two")
    first, second = await bot.do("getUpdates")
    after = second["update_id"] + 1
    assert await bot.do("getUpdates", offset=after) == []

    world.redeliver(first["update_id"])
    world.redeliver(second["update_id"], renumbered=True)
    world.reorder()
    told = await bot.do("getUpdates", offset=after)

    assert texts(told) == ["two", "one"]
    assert [each["update_id"] for each in told] == [after, first["update_id"]]
    assert texts(await bot.do("getUpdates", offset=after)) == ["two"]


@dataclass
class Listener:
    """A webhook: what it was sent, and the statuses it answers with, 200 when they are used up."""

    statuses: list[int]
    heads: list[str] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        status = self.statuses.pop(0) if self.statuses else 200
        writer.write(b"HTTP/1.1 %d Told\r\nContent-Length: 0\r\n\r\n" % status)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def listening(*statuses: int) -> AsyncIterator[Listener]:
    listener = Listener(list(statuses))
    server = await start_server(listener.serve, "127.0.0.1", 0)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()


async def test_a_webhook_gets_each_update_until_it_acknowledges(
    fake: FakeTelegram, bot: Bot, world: World
) -> None:
    async with listening(500, 503) as listener:
        address = f"http://127.0.0.1:{listener.port}/hook"
        await bot.do("setWebhook", url=address, secret_token="s3cret")
        say(world, "one", "two")
        await until(lambda: len(world.updates) == 0, "both are taken")

        status = await bot.do("getWebhookInfo")
        conflict = await bot.refusal("getUpdates")

    pushes = [(each.update_id - 700_000_001, each.status) for each in fake.webhook.pushes]
    assert pushes == [(0, 500), (0, 503), (0, 200), (1, 200)]
    assert all("X-Telegram-Bot-Api-Secret-Token: s3cret" in head for head in listener.heads)
    assert (status["url"], status["pending_update_count"]) == (address, 0)
    assert status["last_error_message"] == "Wrong response from the webhook: 503"
    assert conflict == (
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to"
        " delete the webhook first"
    )


async def test_deleting_the_webhook_keeps_what_waits_unless_asked_to_drop_it(
    fake: FakeTelegram, bot: Bot, world: World
) -> None:
    await bot.do("setWebhook", url="https://127.0.0.1:1/unused")
    say(world, "one")
    await bot.do("deleteWebhook")
    kept = await bot.do("getUpdates")

    assert fake.history.asked_to_drop() == []
    await bot.do("deleteWebhook", drop_pending_updates=True)

    assert texts(kept) == ["one"]
    assert await bot.do("getUpdates") == []
    assert [each.method for each in fake.history.asked_to_drop()] == ["deleteWebhook"]
    assert world.updates.dropped == [kept[0]["update_id"]]


async def test_setting_a_webhook_ends_a_poll(fake: FakeTelegram, bot: Bot) -> None:
    ended: list[str] = []

    async def poll() -> None:
        ended.append(await bot.refusal("getUpdates", timeout=50))

    async with create_task_group() as tasks:
        tasks.start_soon(poll)
        await until(lambda: fake.history.of("getUpdates"), "the poll is under way")
        await bot.do("setWebhook", url="https://127.0.0.1:1/unused")

    assert ended == ["Conflict: terminated by setWebhook request"]
