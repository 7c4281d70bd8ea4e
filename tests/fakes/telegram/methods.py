"""The methods of the Bot API that answer at once, by name. Each does what it says or refuses."""

import re
from collections.abc import Callable
from typing import Any

from tests.fakes.telegram import editing, sending
from tests.fakes.telegram.errors import bad_request
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.reach import chat_of, message_of
from tests.fakes.telegram.state import JSON, TOPIC_COLOR, Chat, ChatKind, Topic
from tests.fakes.telegram.updates import PRESS_KEPT_S
from tests.fakes.telegram.world import World

Method = Callable[[World, Params], Any]

ACTIONS = frozenset(
    "typing upload_photo record_video upload_video record_voice upload_voice upload_document"
    " choose_sticker find_location record_video_note upload_video_note".split()
)
REACTIONS = frozenset(
    "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆"
    " 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉"
    " 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡".split()
)
VARIATION = "\ufe0f"
COMMANDS_MAX = 100
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")


def get_me(world: World, _: Params) -> JSON:
    account = world.account
    return {
        **world.bot.as_json(),
        "can_join_groups": account.can_join_groups,
        "can_read_all_group_messages": account.can_read_all_group_messages,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": account.has_topics_enabled,
        "allows_users_to_create_topics": account.has_topics_enabled,
    }


def set_my_commands(world: World, params: Params) -> bool:
    commands = params.objects("commands", "commands")
    if len(commands) > COMMANDS_MAX:
        bad_request("BOT_COMMANDS_TOO_MUCH")
    for each in commands:
        if not _COMMAND.fullmatch(str(each.get("command", "")).removeprefix("/")):
            bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(str(each.get("description", ""))) <= 256:
            bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    world.account.commands[_command_key(params)] = commands
    return True


def get_my_commands(world: World, params: Params) -> list[JSON]:
    return world.account.commands.get(_command_key(params), [])


def delete_my_commands(world: World, params: Params) -> bool:
    world.account.commands.pop(_command_key(params), None)
    return True


def send_chat_action(world: World, params: Params) -> bool:
    chat = chat_of(world, params)
    topic_id = sending.topic_of(chat, params)
    action = params.text("action")
    if action not in ACTIONS:
        bad_request("wrong parameter action in request")
    world.actions.append((chat.chat_id, topic_id, action))
    return True


def set_message_reaction(world: World, params: Params) -> bool:
    message = message_of(chat_of(world, params), params, "message to react not found")
    reaction = params.objects("reaction", "reaction")
    if len(reaction) > 1:
        bad_request("REACTIONS_TOO_MANY")
    for each in reaction:
        emoji = str(each.get("emoji", "")).replace(VARIATION, "")
        if each.get("type") == "emoji" and emoji not in REACTIONS:
            bad_request("REACTION_INVALID")
    message.reaction = reaction
    return True


def get_file(world: World, params: Params) -> JSON:
    return world.files.get(params.text("file_id"))


def answer_callback_query(world: World, params: Params) -> bool:
    query_id = params.text("callback_query_id")
    press = world.presses.get(query_id)
    if press is None or world.clock() - press.at > PRESS_KEPT_S:
        bad_request("query is too old and response timeout expired or query ID is invalid")
    shown = {"text": params.text("text"), "show_alert": params.boolean("show_alert")}
    world.answers[query_id] = shown
    return True


def create_forum_topic(world: World, params: Params) -> JSON:
    """As TDLib does: the chat, the right, then the name, of which the platform keeps 128
    characters on one line."""
    chat = _forum(world, params)
    if not chat.can_make_topics:
        bad_request("not enough rights to create a topic")
    name = " ".join(params.text("name").split())[:128]
    if not name:
        bad_request("name must be non-empty")
    topic = world.topic(chat, name)
    return {"message_thread_id": topic.topic_id, "name": name, "icon_color": TOPIC_COLOR}


def close_forum_topic(world: World, params: Params) -> bool:
    return _toggle_topic(world, params, closed=True)


def reopen_forum_topic(world: World, params: Params) -> bool:
    return _toggle_topic(world, params, closed=False)


def delete_forum_topic(world: World, params: Params) -> bool:
    chat = _forum(world, params)
    world.delete_topic(chat, _topic(chat, params))
    return True


def _toggle_topic(world: World, params: Params, *, closed: bool) -> bool:
    chat = _forum(world, params)
    topic = _topic(chat, params)
    if topic.is_closed is closed:
        bad_request("TOPIC_NOT_MODIFIED")
    world.close_topic(chat, topic, closed=closed)
    return True


def _forum(world: World, params: Params) -> Chat:
    chat = chat_of(world, params)
    has_topics = chat.kind is ChatKind.PRIVATE and world.account.has_topics_enabled
    if not chat.is_forum and not has_topics:
        bad_request("the chat is not a forum")
    return chat


def _topic(chat: Chat, params: Params) -> Topic:
    topic = chat.topics.get(params.integer("message_thread_id"))
    if topic is None or topic.is_deleted:
        bad_request("TOPIC_ID_INVALID")
    return topic


def _command_key(params: Params) -> tuple[str, str]:
    scope = params.nested("scope", "scope") or {"type": "default"}
    return str(sorted(scope.items())), params.text("language_code")


METHODS: dict[str, Method] = {
    "getme": get_me,
    "setmycommands": set_my_commands,
    "getmycommands": get_my_commands,
    "deletemycommands": delete_my_commands,
    "sendmessage": sending.send_message,
    "sendmessagedraft": sending.send_message_draft,
    "senddocument": sending.send_document,
    "sendphoto": sending.send_photo,
    "sendvoice": sending.send_voice,
    "sendchataction": send_chat_action,
    "setmessagereaction": set_message_reaction,
    "getfile": get_file,
    "editmessagetext": editing.edit_message_text,
    "editmessagereplymarkup": editing.edit_message_reply_markup,
    "deletemessage": editing.delete_message,
    "answercallbackquery": answer_callback_query,
    "createforumtopic": create_forum_topic,
    "closeforumtopic": close_forum_topic,
    "reopenforumtopic": reopen_forum_topic,
    "deleteforumtopic": delete_forum_topic,
}
