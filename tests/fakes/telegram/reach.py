"""Which chat and which message a request means, and whether the bot may reach them."""

from tests.fakes.telegram.errors import bad_request, forbidden
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.state import BotStanding, Chat, Message
from tests.fakes.telegram.world import World

REASONS = {
    BotStanding.STRANGER: "bot can't initiate conversation with a user",
    BotStanding.BLOCKED: "bot was blocked by the user",
    BotStanding.GONE: "user is deactivated",
}


def chat_of(world: World, params: Params) -> Chat:
    """The chat that `chat_id` names. Raises Refusal if the bot cannot do anything there."""
    chat = _named(world, params)
    if chat.migrated_to is not None:
        bad_request(
            "group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.migrated_to
        )
    if chat.standing is BotStanding.KICKED:
        forbidden(f"bot was kicked from the {chat.kind} chat")
    if chat.standing is not BotStanding.MEMBER:
        forbidden(REASONS[chat.standing])
    return chat


def message_of(chat: Chat, params: Params, complaint: str) -> Message:
    """The message that `message_id` names in this chat. Raises Refusal if there is none."""
    message_id = params.integer("message_id")
    if message_id <= 0:
        bad_request("message identifier is not specified")
    message = chat.messages.get(message_id)
    if message is None or message.is_deleted:
        bad_request(complaint)
    return message


def _named(world: World, params: Params) -> Chat:
    named = params.text("chat_id").strip()
    if not named:
        bad_request("chat_id is empty")
    try:
        chat = world.chats.get(int(named))
    except ValueError:
        chat = None
    if chat is None:
        bad_request("chat not found")
    return chat
