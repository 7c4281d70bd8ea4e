"""The methods that change messages or take them away."""

from tests.fakes.telegram.errors import NOT_MODIFIED, bad_request
from tests.fakes.telegram.markup import inline_keyboard
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.reach import chat_of, message_of
from tests.fakes.telegram.sending import text_content
from tests.fakes.telegram.state import JSON, ChatKind, Message
from tests.fakes.telegram.world import World

DELETABLE_S = 48 * 3600


def edit_message_text(world: World, params: Params) -> JSON:
    """Without a keyboard in the request the message loses its own."""
    message = _editable(world, params)
    content = text_content(params)
    if "text" not in message.content:
        bad_request("there is no text in the message to edit")
    return _change(world, message, content, inline_keyboard(params))


def edit_message_reply_markup(world: World, params: Params) -> JSON:
    message = _editable(world, params)
    return _change(world, message, message.content, inline_keyboard(params))


def delete_message(world: World, params: Params) -> bool:
    message = message_of(chat_of(world, params), params, "message to delete not found")
    is_old = world.clock() - message.date > DELETABLE_S
    is_theirs = not message.is_by_bot and message.chat.kind is not ChatKind.PRIVATE
    if is_old or is_theirs or message.is_service:
        bad_request("message can't be deleted")
    message.is_deleted = True
    return True


def _editable(world: World, params: Params) -> Message:
    message = message_of(chat_of(world, params), params, "message to edit not found")
    if not message.is_by_bot or message.is_service:
        bad_request("message can't be edited")
    return message


def _change(world: World, message: Message, content: JSON, keyboard: JSON | None) -> JSON:
    if content == message.content and keyboard == message.reply_markup:
        bad_request(NOT_MODIFIED)
    message.content = content
    message.reply_markup = keyboard
    message.edit_date = world.now
    return message.as_json()
