"""The fake platform keeps the contract of the Bot API: messages, edits, topics, files, refusals."""

from typing import Any

import pytest

from tests.channels.telegram_bot import Bot, bot_at
from tests.fakes.telegram.server import FakeTelegram, serving
from tests.fakes.telegram.world import World
from tests.harness.http import connection

NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are"
    " exactly the same as a current content and reply markup of the message"
)


def keyboard(*labels: str) -> dict[str, Any]:
    return {"inline_keyboard": [[{"text": each, "callback_data": each.lower()} for each in labels]]}


async def test_a_wrong_token_is_unauthorized_and_a_wrong_method_is_not_found(
    fake: FakeTelegram, bot: Bot
) -> None:
    async with connection(fake.url) as http:
        response = await http.get("/bot1:wrong/getMe")

    assert response.status_code == 401
    assert response.json() == {"ok": False, "error_code": 401, "description": "Unauthorized"}
    assert await bot.ask("makeCoffee") == {
        "ok": False,
        "error_code": 404,
        "description": "Not Found",
    }


@pytest.mark.parametrize("how", ["json", "form", "query", "parts"])
async def test_parameters_may_come_in_any_of_the_four_ways(
    fake: FakeTelegram, world: World, how: str
) -> None:
    chat = world.private_chat()
    address = f"/bot{fake.token}/sendMessage"
    plain = {"chat_id": str(chat.chat_id), "text": "zażółć & 100%"}
    async with connection(fake.url) as http:
        match how:
            case "json":
                response = await http.post(address, json=plain)
            case "form":
                response = await http.post(address, data=plain)
            case "query":
                response = await http.get(address, params=plain)
            case _:
                # The part that holds a file makes it a body of parts.
                response = await http.post(address, data=plain, files={"x": ("x", b"\x00\r\n")})

    assert response.status_code == 200
    assert world.texts_seen(chat) == ["zażółć & 100%"]


async def test_the_bot_says_who_it_is(bot: Bot) -> None:
    me = await bot.do("getMe")

    assert me["is_bot"] is True
    assert me["username"] == "koboshi_bot"
    assert me["has_topics_enabled"] is False


async def test_commands_are_kept_for_each_scope(bot: Bot) -> None:
    commands = [{"command": "stop", "description": "Stop the turn"}]
    await bot.do("setMyCommands", commands=commands)

    assert await bot.do("getMyCommands") == commands
    assert await bot.do("getMyCommands", scope={"type": "all_group_chats"}) == []
    wrong = [{"command": "Stop!", "description": "x"}]
    assert await bot.refusal("setMyCommands", commands=wrong) == "Bad Request: BOT_COMMAND_INVALID"


@pytest.mark.parametrize("letter", ["a", "😀"])
async def test_a_text_has_at_most_4096_units_of_utf16(bot: Bot, world: World, letter: str) -> None:
    chat = world.private_chat().chat_id
    longest = letter * (4096 // (2 if letter == "😀" else 1))

    await bot.do("sendMessage", chat_id=chat, text=longest)

    refusal = await bot.refusal("sendMessage", chat_id=chat, text=longest + letter)
    assert refusal == "Bad Request: message is too long"
    assert await bot.refusal("sendMessage", chat_id=chat, text=" \n") == (
        "Bad Request: message text is empty"
    )


async def test_entities_are_counted_in_utf16_and_must_fit_the_text(bot: Bot, world: World) -> None:
    chat = world.private_chat().chat_id
    bold = {"type": "bold", "offset": 2, "length": 2}

    sent = await bot.do("sendMessage", chat_id=chat, text="😀ok /go", entities=[bold])

    command = {"type": "bot_command", "offset": 5, "length": 3}
    assert sent["entities"] == [bold, command]
    for wrong, words in (
        ({**bold, "length": 9}, "ends after the end of the text at UTF-16 offset 11"),
        ({**bold, "offset": 1}, "begins in a middle of a UTF-16 symbol at byte offset 4"),
        ({**bold, "type": "huge"}, "can't parse MessageEntity: Unsupported type specified"),
    ):
        refusal = await bot.refusal("sendMessage", chat_id=chat, text="😀ok", entities=[wrong])
        assert refusal.endswith(words)


async def test_html_becomes_text_and_entities(bot: Bot, world: World) -> None:
    chat = world.private_chat().chat_id

    sent = await bot.do("sendMessage", chat_id=chat, text="a <b>b&amp;c</b>", parse_mode="HTML")

    assert (sent["text"], sent["entities"]) == (
        "a b&c",
        [{"type": "bold", "offset": 2, "length": 3}],
    )
    refusal = await bot.refusal("sendMessage", chat_id=chat, text="<x>", parse_mode="HTML")
    assert refusal.startswith("Bad Request: can't parse entities")


async def test_private_chats_and_groups_share_one_counter_and_supergroups_have_their_own(
    bot: Bot, world: World
) -> None:
    ada = world.user("Ada")
    private, group = world.private_chat(ada), world.group()
    supergroup = world.supergroup()
    assert str(supergroup.chat_id).startswith("-100")

    ids = [
        world.say(private, ada, "1").message_id,
        (await bot.do("sendMessage", chat_id=group.chat_id, text="2"))["message_id"],
        (await bot.do("sendMessage", chat_id=private.chat_id, text="3"))["message_id"],
        world.say(supergroup, ada, "2").message_id,
        (await bot.do("sendMessage", chat_id=supergroup.chat_id, text="3"))["message_id"],
        world.say(group, ada, "4").message_id,
    ]

    assert ids == [1, 2, 3, 2, 3, 4]


async def test_a_refused_message_uses_up_no_id(bot: Bot, world: World) -> None:
    chat = world.private_chat().chat_id
    await bot.refusal("sendMessage", chat_id=chat, text="x", message_thread_id=99)
    await bot.refusal("sendMessage", chat_id=chat, text="x", reply_parameters={"message_id": 9})

    assert (await bot.do("sendMessage", chat_id=chat, text="x"))["message_id"] == 1


async def test_a_reply_needs_its_anchor_unless_it_may_do_without(bot: Bot, world: World) -> None:
    ada = world.user()
    chat = world.private_chat(ada)
    asked = world.say(chat, ada, "why?")
    anchor = {"message_id": asked.message_id}

    sent = await bot.do(
        "sendMessage", chat_id=chat.chat_id, text="because", reply_parameters=anchor
    )
    world.delete(asked)

    assert sent["reply_to_message"]["message_id"] == asked.message_id
    refusal = await bot.refusal(
        "sendMessage", chat_id=chat.chat_id, text="because", reply_parameters=anchor
    )
    assert refusal == "Bad Request: message to be replied not found"
    free = {**anchor, "allow_sending_without_reply": True}
    sent = await bot.do("sendMessage", chat_id=chat.chat_id, text="because", reply_parameters=free)
    assert "reply_to_message" not in sent


async def test_topics_are_opened_closed_and_deleted(bot: Bot, world: World) -> None:
    forum = world.supergroup(forum=True)
    chat = forum.chat_id
    made = await bot.do("createForumTopic", chat_id=chat, name="Work")
    thread = {"chat_id": chat, "message_thread_id": made["message_thread_id"]}

    sent = await bot.do("sendMessage", text="in it", **thread)

    assert sent["is_topic_message"] is True
    assert world.texts_seen(forum, made["message_thread_id"]) == ["in it"]
    for unknown in (1, 99):
        refusal = await bot.refusal(
            "sendMessage", chat_id=chat, text="x", message_thread_id=unknown
        )
        assert refusal == "Bad Request: message thread not found"
    await bot.do("closeForumTopic", **thread)
    assert await bot.refusal("sendMessage", text="x", **thread) == "Bad Request: TOPIC_CLOSED"
    await bot.do("deleteForumTopic", **thread)
    assert await bot.refusal("sendMessage", text="x", **thread) == "Bad Request: TOPIC_DELETED"
    assert world.texts_seen(forum) == []


async def test_private_chats_have_topics_where_the_bot_has_them_enabled() -> None:
    async with serving(World(has_topics_enabled=True)) as fake, bot_at(fake) as bot:
        chat = fake.world.private_chat()
        made = await bot.do("createForumTopic", chat_id=chat.chat_id, name="Work")
        thread = made["message_thread_id"]

        sent = await bot.do(
            "sendMessage", chat_id=chat.chat_id, text="in it", message_thread_id=thread
        )

        assert (await bot.do("getMe"))["has_topics_enabled"] is True
        assert sent["message_thread_id"] == thread
        assert fake.world.texts_seen(chat, thread) == ["in it"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"entities": "none"},
        {"entities": {"type": "bold"}},
        {"reply_parameters": [1]},
        {"reply_markup": [1]},
        {"reply_markup": {"inline_keyboard": [["Yes"]]}},
        {"message_thread_id": "general"},
    ],
    ids=str,
)
async def test_what_has_the_wrong_shape_is_a_bad_request(
    bot: Bot, world: World, wrong: dict[str, Any]
) -> None:
    chat = world.private_chat()

    refusal = await bot.refusal("sendMessage", chat_id=chat.chat_id, text="x", **wrong)

    assert refusal.startswith("Bad Request: ")


async def test_an_edit_must_change_something_of_a_message_of_ours(bot: Bot, world: World) -> None:
    ada = world.user()
    chat = world.private_chat(ada)
    theirs = world.say(chat, ada, "hello")
    sent = await bot.do("sendMessage", chat_id=chat.chat_id, text="one", reply_markup=keyboard("A"))
    ours = {"chat_id": chat.chat_id, "message_id": sent["message_id"]}

    same = await bot.refusal("editMessageReplyMarkup", reply_markup=keyboard("A"), **ours)
    await bot.do("editMessageText", text="two", **ours)

    assert same == NOT_MODIFIED
    assert world.messages_seen(chat)[-1].labels == []
    assert await bot.refusal("editMessageText", text="two", **ours) == NOT_MODIFIED
    assert await bot.refusal("editMessageReplyMarkup", **ours) == NOT_MODIFIED
    assert world.texts_seen(chat) == ["hello", "two"]
    for message_id, words in (
        (theirs.message_id, "Bad Request: message can't be edited"),
        (99, "Bad Request: message to edit not found"),
    ):
        for method in ("editMessageText", "editMessageReplyMarkup"):
            named = {"chat_id": chat.chat_id, "message_id": message_id}
            assert await bot.refusal(method, text="x", **named) == words


async def test_an_id_of_another_private_chat_is_not_found_in_this_one(
    bot: Bot, world: World
) -> None:
    here, there = world.private_chat(), world.private_chat()
    sent = await bot.do("sendMessage", chat_id=there.chat_id, text="there")

    refusal = await bot.refusal(
        "editMessageReplyMarkup", chat_id=here.chat_id, message_id=sent["message_id"]
    )

    assert refusal == "Bad Request: message to edit not found"


async def test_a_service_message_cannot_be_edited(bot: Bot, world: World) -> None:
    forum = world.supergroup(forum=True)
    topic = world.topic(forum, "Work")

    refusal = await bot.refusal(
        "editMessageReplyMarkup", chat_id=forum.chat_id, message_id=topic.topic_id
    )

    assert refusal == "Bad Request: message can't be edited"


async def test_a_button_carries_at_most_64_bytes(bot: Bot, world: World) -> None:
    chat = world.private_chat().chat_id
    for carried, is_good in (("é" * 32, True), ("é" * 32 + "x", False), ("", False)):
        markup = {"inline_keyboard": [[{"text": "Go", "callback_data": carried}]]}
        answer = await bot.ask("sendMessage", chat_id=chat, text="x", reply_markup=markup)
        assert answer["ok"] is is_good
        assert is_good or answer["description"] == "Bad Request: BUTTON_DATA_INVALID"


async def test_a_deleted_message_is_seen_no_more(bot: Bot, world: World) -> None:
    chat = world.private_chat()
    sent = await bot.do("sendMessage", chat_id=chat.chat_id, text="oops")
    named = {"chat_id": chat.chat_id, "message_id": sent["message_id"]}

    await bot.do("deleteMessage", **named)

    assert world.messages_seen(chat) == world.copies("oops") == []
    refusal = await bot.refusal("deleteMessage", **named)
    assert refusal == "Bad Request: message to delete not found"


async def test_a_chat_that_cannot_be_reached_says_why(bot: Bot, world: World) -> None:
    blocked, gone, stranger = world.user(), world.user(), world.user()
    for user in (blocked, gone):
        world.private_chat(user)
    world.private_chat(stranger, started=False)
    group, supergroup = world.group(), world.supergroup()
    world.block(blocked)
    world.deactivate(gone)
    world.kick(group)
    world.kick(supergroup)

    for chat, words in (
        (blocked.user_id, "Forbidden: bot was blocked by the user"),
        (gone.user_id, "Forbidden: user is deactivated"),
        (stranger.user_id, "Forbidden: bot can't initiate conversation with a user"),
        (group.chat_id, "Forbidden: bot was kicked from the group chat"),
        (supergroup.chat_id, "Forbidden: bot was kicked from the supergroup chat"),
        (5, "Bad Request: chat not found"),
        ("", "Bad Request: chat_id is empty"),
    ):
        assert await bot.refusal("sendMessage", chat_id=chat, text="x") == words


async def test_a_migrated_group_names_its_new_id(bot: Bot, world: World) -> None:
    group = world.group()
    new = world.migrate(group)

    answer = await bot.ask("sendMessage", chat_id=group.chat_id, text="x")
    told = [update["message"] for update in await bot.do("getUpdates")]

    assert answer["description"] == "Bad Request: group chat was upgraded to a supergroup chat"
    assert answer["parameters"] == {"migrate_to_chat_id": new.chat_id}
    assert [each.get("migrate_to_chat_id") for each in told] == [new.chat_id, None]
    assert [each.get("migrate_from_chat_id") for each in told] == [None, group.chat_id]
    await bot.do("sendMessage", chat_id=new.chat_id, text="here again")


async def test_a_file_goes_up_and_comes_down_as_it_was(
    fake: FakeTelegram, bot: Bot, world: World
) -> None:
    chat = world.private_chat()
    content = bytes(range(256)) + b"\r\n--x"
    async with connection(fake.url) as http:
        response = await http.post(
            f"/bot{fake.token}/sendDocument",
            data={"chat_id": str(chat.chat_id), "caption": "all bytes"},
            files={"document": ("all.bin", content, "application/x-all")},
        )
        sent = response.json()["result"]["document"]
        found = await bot.do("getFile", file_id=sent["file_id"])
        fetched = await http.get(f"/file/bot{fake.token}/{found['file_path']}")

    assert (sent["file_name"], sent["mime_type"]) == ("all.bin", "application/x-all")
    assert found["file_size"] == len(content)
    assert fetched.content == content
    assert world.texts_seen(chat) == ["all bytes"]


async def test_a_draft_is_shown_in_private_until_the_message_comes(bot: Bot, world: World) -> None:
    chat, group = world.private_chat(), world.group()

    await bot.do("sendMessageDraft", chat_id=chat.chat_id, draft_id=7, text="wri")
    await bot.do("sendMessageDraft", chat_id=chat.chat_id, draft_id=7, text="writing")
    seen = world.drafts_seen(chat)
    await bot.do("sendMessage", chat_id=chat.chat_id, text="written")

    assert seen == ["writing"]
    assert world.drafts_seen(chat) == []
    refusal = await bot.refusal("sendMessageDraft", chat_id=group.chat_id, draft_id=7, text="x")
    assert refusal == "Bad Request: TEXTDRAFT_PEER_INVALID"


async def test_actions_and_reactions_are_seen(bot: Bot, world: World) -> None:
    ada = world.user()
    chat = world.private_chat(ada)
    message = world.say(chat, ada, "hi")
    named = {"chat_id": chat.chat_id, "message_id": message.message_id}
    eyes = [{"type": "emoji", "emoji": "👀"}]

    await bot.do("sendChatAction", chat_id=chat.chat_id, action="typing")
    await bot.do("setMessageReaction", reaction=eyes, **named)

    assert world.actions == [(chat.chat_id, None, "typing")]
    assert message.reaction == eyes
    wrong = [{"type": "emoji", "emoji": "🧱"}]
    refusal = await bot.refusal("setMessageReaction", reaction=wrong, **named)
    assert refusal == "Bad Request: REACTION_INVALID"
