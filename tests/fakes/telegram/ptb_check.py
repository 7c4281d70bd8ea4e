"""Checks the fake against a typed client that we did not write, python-telegram-bot.

Run by the interpreter of `.venv-ptb`: `-m tests.fakes.telegram.ptb_check <url> <token>`. Prints one
line for each check, and ends with 1 if one of them failed.
"""

import asyncio
import logging
import sys
import traceback
from collections.abc import Awaitable, Callable

import telegram as tg
from telegram import error as tg_errors

from tests.fakes.telegram.ptb_stage import Stage, all_known, keyboard, refused

Check = Callable[[Stage], Awaitable[None]]
CHECKS: list[Check] = []
FAILURES = (AssertionError, tg_errors.TelegramError, LookupError, TypeError, ValueError)


def check(function: Check) -> Check:
    CHECKS.append(function)
    return function


@check
async def the_bot_knows_itself(stage: Stage) -> None:
    me = await stage.bot.get_me()
    all_known(me)
    assert me.is_bot
    assert me.username == "koboshi_bot"
    assert me.has_topics_enabled is False
    assert me.can_join_groups


@check
async def a_wrong_token_is_invalid(stage: Stage) -> None:
    await refused(tg_errors.InvalidToken, "", stage.bot_with("1:wrong").get_me())


@check
async def commands_are_kept(stage: Stage) -> None:
    await stage.bot.set_my_commands([("stop", "Stop the turn"), ("new", "Begin again")])
    assert [each.command for each in await stage.bot.get_my_commands()] == ["stop", "new"]


@check
async def a_message_is_parsed(stage: Stage) -> None:
    ada = stage.person()
    stage.people("say", chat=ada, user=ada, text="/stop@koboshi_bot 😀 @koboshi_bot")
    message = (await stage.update()).message
    assert message is not None
    assert message.chat.type == "private"
    assert message.from_user is not None
    assert message.from_user.id == ada
    assert message.parse_entities() == dict(
        zip(message.entities, ("/stop@koboshi_bot", "@koboshi_bot"), strict=True)
    )


@check
async def an_edit_is_parsed(stage: Stage) -> None:
    ada = stage.person()
    said = stage.people("say", chat=ada, user=ada, text="before")
    stage.people("edit", message=[ada, said["message_id"]], text="after")
    _, edit = await stage.updates()
    assert edit.edited_message is not None
    assert edit.edited_message.text == "after"
    assert edit.edited_message.edit_date is not None


@check
async def files_are_parsed(stage: Stage) -> None:
    ada = stage.person()
    for role in ("photo", "document", "voice", "sticker"):
        stage.people("say", chat=ada, user=ada, text="look", **{role: f"the {role}"})
        message = (await stage.update()).message
        assert message is not None
        attached = message.effective_attachment
        attached = attached[-1] if isinstance(attached, tuple) else attached
        assert message.caption == "look"
        file = await attached.get_file()
        assert bytes(await file.download_as_bytearray()) == f"the {role}".encode()


@check
async def albums_and_forwards_are_parsed(stage: Stage) -> None:
    ada = stage.person()
    for _ in range(2):
        stage.people("say", chat=ada, user=ada, photo="x", media_group_id="7")
    origin = {"type": "hidden_user", "date": 1_700_000_000, "sender_user_name": "Grace"}
    stage.people("say", chat=ada, user=ada, text="passed on", forward_origin=origin)
    one, two, forward = (each.message for each in await stage.updates())
    assert one is not None
    assert two is not None
    assert one.media_group_id == two.media_group_id == "7"
    assert forward is not None
    assert isinstance(forward.forward_origin, tg.MessageOriginHiddenUser)


@check
async def topics_are_parsed(stage: Stage) -> None:
    ada = stage.person()
    forum = stage.people("supergroup", forum=True)["id"]
    made = await stage.bot.create_forum_topic(forum, "Work")
    all_known(made)
    thread = made.message_thread_id
    stage.people("say", chat=forum, user=ada, text="in it", topic=thread)
    await stage.bot.close_forum_topic(forum, thread)
    created, said, closed = (each.message for each in await stage.updates())
    assert created is not None
    assert created.forum_topic_created is not None
    assert created.forum_topic_created.name == "Work"
    assert said is not None
    assert said.is_topic_message
    assert said.message_thread_id == thread
    assert closed is not None
    assert closed.forum_topic_closed is not None
    sent = stage.bot.send_message(forum, "x", message_thread_id=thread)
    await refused(tg_errors.BadRequest, "Topic_closed", sent)
    await stage.bot.delete_forum_topic(forum, thread)
    sent = stage.bot.send_message(forum, "x", message_thread_id=thread)
    await refused(tg_errors.BadRequest, "Topic_deleted", sent)
    sent = stage.bot.send_message(forum, "x", message_thread_id=999)
    await refused(tg_errors.BadRequest, "Message thread not found", sent)


@check
async def a_migration_is_parsed(stage: Stage) -> None:
    group = stage.people("group")["id"]
    new = stage.people("migrate", group=group)["id"]
    old_told, new_told = (each.message for each in await stage.updates())
    assert old_told is not None
    assert old_told.migrate_to_chat_id == new
    assert new_told is not None
    assert new_told.migrate_from_chat_id == group
    moved = await refused(tg_errors.ChatMigrated, "", stage.bot.send_message(group, "x"))
    assert isinstance(moved, tg_errors.ChatMigrated)
    assert moved.new_chat_id == new


@check
async def a_press_is_parsed_and_answered(stage: Stage) -> None:
    ada = stage.person()
    sent = await stage.bot.send_message(ada, "sure?", reply_markup=keyboard("yes", "no"))
    stage.people("press", message=[ada, sent.message_id], button="yes")
    query = (await stage.update()).callback_query
    assert query is not None
    assert query.data == "yes"
    assert isinstance(query.message, tg.Message)
    assert query.message.message_id == sent.message_id
    assert await query.answer("noted")
    unknown = stage.bot.answer_callback_query("1")
    await refused(tg_errors.BadRequest, "Query is too old and response timeout expired", unknown)


@check
async def leaving_is_parsed(stage: Stage) -> None:
    ada = stage.person()
    group = stage.people("group")["id"]
    stage.people("block", user=ada)
    stage.people("kick", chat=group)
    changes = [each.my_chat_member for each in await stage.updates()]
    assert [each.new_chat_member.status for each in changes if each] == ["kicked", "kicked"]
    words = "bot was blocked by the user"
    await refused(tg_errors.Forbidden, words, stage.bot.send_message(ada, "x"))
    words = "bot was kicked from the group chat"
    await refused(tg_errors.Forbidden, words, stage.bot.send_message(group, "x"))
    await refused(tg_errors.BadRequest, "Chat not found", stage.bot.send_message(5, "x"))


@check
async def a_message_is_sent_with_all_it_may_have(stage: Stage) -> None:
    ada = stage.person()
    said = stage.people("say", chat=ada, user=ada, text="why?")
    await stage.updates()
    bold = tg.MessageEntity("bold", offset=0, length=2)
    sent = await stage.bot.send_message(
        ada,
        "😀 so",
        entities=[bold],
        reply_markup=keyboard("a"),
        reply_parameters=tg.ReplyParameters(said["message_id"]),
    )
    all_known(sent)
    assert sent.entities == (bold,)
    assert sent.reply_markup == keyboard("a")
    assert sent.reply_to_message is not None
    assert sent.reply_to_message.message_id == said["message_id"]
    lost = tg.ReplyParameters(999)
    reply = stage.bot.send_message(ada, "x", reply_parameters=lost)
    await refused(tg_errors.BadRequest, "Message to be replied not found", reply)
    free = tg.ReplyParameters(999, allow_sending_without_reply=True)
    assert (await stage.bot.send_message(ada, "x", reply_parameters=free)).reply_to_message is None
    long = stage.bot.send_message(ada, "x" * 4097)
    await refused(tg_errors.BadRequest, "Message is too long", long)
    wide = stage.bot.send_message(ada, "x", reply_markup=keyboard("y" * 65))
    await refused(tg_errors.BadRequest, "Button_data_invalid", wide)


@check
async def a_message_is_edited_and_deleted(stage: Stage) -> None:
    ada = stage.person()
    said = stage.people("say", chat=ada, user=ada, text="theirs")["message_id"]
    await stage.updates()
    sent = await stage.bot.send_message(ada, "one", reply_markup=keyboard("a"))
    same = "Message is not modified: specified new message content"
    again = sent.edit_reply_markup(keyboard("a"))
    await refused(tg_errors.BadRequest, same, again)
    await sent.edit_reply_markup(None)
    edited = await sent.edit_text("two")
    all_known(edited)
    assert isinstance(edited, tg.Message)
    assert edited.text == "two"
    await refused(tg_errors.BadRequest, same, sent.edit_text("two"))
    theirs = stage.bot.edit_message_text("x", chat_id=ada, message_id=said)
    await refused(tg_errors.BadRequest, "Message can't be edited", theirs)
    nothing = stage.bot.edit_message_reply_markup(chat_id=ada, message_id=999)
    await refused(tg_errors.BadRequest, "Message to edit not found", nothing)
    await sent.delete()
    await refused(tg_errors.BadRequest, "Message to delete not found", sent.delete())
    assert stage.people("texts_seen", chat=ada) == ["theirs"]


@check
async def files_are_sent(stage: Stage) -> None:
    ada = stage.person()
    content = bytes(range(256))
    sent = await stage.bot.send_document(ada, content, filename="all.bin", caption="bytes")
    all_known(sent)
    assert sent.document is not None
    assert sent.document.file_name == "all.bin"
    file = await stage.bot.get_file(sent.document.file_id)
    assert bytes(await file.download_as_bytearray()) == content
    again = await stage.bot.send_document(ada, sent.document.file_id)
    assert again.document is not None
    all_known(await stage.bot.send_photo(ada, content))
    all_known(await stage.bot.send_voice(ada, content))


@check
async def small_signs_are_given(stage: Stage) -> None:
    ada = stage.person()
    said = stage.people("say", chat=ada, user=ada, text="hi")["message_id"]
    await stage.updates()
    assert await stage.bot.send_chat_action(ada, "typing")
    assert await stage.bot.send_message_draft(ada, 7, "writ")
    assert stage.people("drafts_seen", chat=ada) == ["writ"]
    for emoji in tg.constants.ReactionEmoji:
        assert await stage.bot.set_message_reaction(ada, said, emoji.value)
    brick = stage.bot.set_message_reaction(ada, said, tg.ReactionTypeEmoji("🧱"))
    await refused(tg_errors.BadRequest, "Reaction_invalid", brick)


@check
async def too_many_requests_name_the_wait(stage: Stage) -> None:
    ada = stage.person()
    stage.people("add_fault", act="too_many", method="sendMessage", chat=ada, seconds=7)
    sent = stage.bot.send_message(ada, "x")
    await refused(tg_errors.RetryAfter, "Retry in 7 seconds", sent)


@check
async def errors_of_the_network_are_told_apart(stage: Stage) -> None:
    ada = stage.person()
    for act in ("drop", "status", "garble"):
        stage.people("add_fault", act=act, method="sendMessage", chat=ada)
        kind = tg_errors.TelegramError if act == "garble" else tg_errors.NetworkError
        await refused(kind, "", stage.bot.send_message(ada, "x"))
    assert stage.people("texts_seen", chat=ada) == []


@check
async def two_pollers_are_a_conflict(stage: Stage) -> None:
    other = stage.bot_with(stage.token)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(
            refused(
                tg_errors.Conflict,
                "terminated by other getUpdates request",
                stage.bot.get_updates(timeout=20),
            )
        )
        while not first.done():
            await other.get_updates()


@check
async def a_webhook_is_set_and_taken_away(stage: Stage) -> None:
    await stage.bot.set_webhook("https://127.0.0.1:1/hook", secret_token="s", max_connections=3)
    found = await stage.bot.get_webhook_info()
    all_known(found)
    assert found.url == "https://127.0.0.1:1/hook"
    assert found.max_connections == 3
    words = "can't use getUpdates method while webhook is active"
    await refused(tg_errors.Conflict, words, stage.bot.get_updates())
    await stage.bot.delete_webhook()
    assert (await stage.bot.get_webhook_info()).url == ""
    assert stage.people("asked_to_drop") == []


async def run(url: str, token: str) -> int:
    """How many checks failed."""
    failed = 0
    stage = Stage(url, token)
    for each in CHECKS:
        name = each.__name__.replace("_", " ")
        try:
            await each(stage)
        except (
            AssertionError,
            tg_errors.TelegramError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            failed += 1
            frames = traceback.extract_tb(error.__traceback__)
            where = [frame.lineno for frame in frames if frame.filename == __file__][-1]
            print(f"FAILED {name}: line {where}: {error!r}")
        else:
            print(f"ok {name}")
    return failed


if __name__ == "__main__":
    logging.disable()
    sys.exit(1 if asyncio.run(run(sys.argv[1], sys.argv[2])) else 0)
