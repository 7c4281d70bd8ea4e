"""The methods that make messages."""

from tests.fakes.telegram import entities as texts
from tests.fakes.telegram.errors import bad_request
from tests.fakes.telegram.files import StoredFile, shown
from tests.fakes.telegram.markup import inline_keyboard
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.reach import chat_of
from tests.fakes.telegram.state import JSON, Chat, ChatKind, Draft, Message
from tests.fakes.telegram.world import World


def send_message(world: World, params: Params) -> JSON:
    chat = chat_of(world, params)
    return _post(world, chat, params, text_content(params)).as_json()


def send_message_draft(world: World, params: Params) -> bool:
    chat = chat_of(world, params)
    if chat.kind is not ChatKind.PRIVATE:
        bad_request("TEXTDRAFT_PEER_INVALID")
    draft_id = params.integer("draft_id")
    if draft_id == 0:
        bad_request("draft_id must be non-zero")
    text, _ = texts.formatted(params, "text", "entities")
    texts.check_length(text, texts.TEXT_UNITS_MAX, "message is too long")
    topic_id = topic_of(chat, params)
    chat.drafts[draft_id] = Draft(text=text, topic_id=topic_id, at=world.clock())
    return True


def send_document(world: World, params: Params) -> JSON:
    return _send_file(world, params, "document")


def send_photo(world: World, params: Params) -> JSON:
    return _send_file(world, params, "photo")


def send_voice(world: World, params: Params) -> JSON:
    return _send_file(world, params, "voice")


def text_content(params: Params) -> JSON:
    """What is said, as fields of a message. Raises Refusal if it is too long or nothing."""
    text, entities = texts.formatted(params, "text", "entities")
    if not text:
        bad_request("message text is empty")
    texts.check_length(text, texts.TEXT_UNITS_MAX, "message is too long")
    return {"text": text, "entities": entities} if entities else {"text": text}


def topic_of(chat: Chat, params: Params) -> int | None:
    """The topic that `message_thread_id` names. The general one has no id to send to."""
    topic_id = params.integer("message_thread_id")
    if not topic_id:
        return None
    topic = chat.topics.get(topic_id)
    if topic is None:
        bad_request("message thread not found")
    if topic.is_deleted:
        bad_request("TOPIC_DELETED")
    if topic.is_closed:
        bad_request("TOPIC_CLOSED")
    return topic_id


def _send_file(world: World, params: Params, role: str) -> JSON:
    chat = chat_of(world, params)
    caption, entities = texts.formatted(params, "caption", "caption_entities")
    texts.check_length(caption, texts.CAPTION_UNITS_MAX, "message caption is too long")
    content = shown(role, _file(world, params, role))
    if caption:
        content["caption"] = caption
        if entities:
            content["caption_entities"] = entities
    return _post(world, chat, params, content).as_json()


def _file(world: World, params: Params, role: str) -> StoredFile:
    upload = params.upload(role)
    if upload is None:
        file_id = params.text(role)
        if not file_id:
            bad_request(f"there is no {role} in the request")
        return world.files.with_id(file_id)
    if not upload.content:
        bad_request("file must be non-empty")
    return world.files.add(role, upload.content, upload.name, upload.kind)


def _post(world: World, chat: Chat, params: Params, content: JSON) -> Message:
    """Everything is checked before an id is used up: a refused request leaves no gap."""
    topic_id = topic_of(chat, params)
    reply_to = _replied(chat, params)
    keyboard = inline_keyboard(params)
    if topic_id is None and reply_to is not None:
        topic_id = reply_to.topic_id
    message = world.add_message(chat, world.bot, world.now, content)
    message.topic_id = topic_id
    message.reply_to = reply_to
    message.reply_markup = keyboard
    chat.drafts.clear()
    return message


def _replied(chat: Chat, params: Params) -> Message | None:
    given = params.nested("reply_parameters", "reply parameters")
    if given is None and not params.integer("reply_to_message_id"):
        return None
    if given is None:
        allowed = params.boolean("allow_sending_without_reply")
        given = {
            "message_id": params.integer("reply_to_message_id"),
            "allow_sending_without_reply": allowed,
        }
    if not isinstance(given, dict):
        bad_request("object expected as reply parameters")
    replied = chat.messages.get(int(given.get("message_id", 0)))
    if replied is None or replied.is_deleted:
        if given.get("allow_sending_without_reply"):
            return None
        bad_request("message to be replied not found")
    return replied
