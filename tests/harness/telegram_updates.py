"""Updates of Telegram as a test writes them, and a reader for them."""

from typing import Any

import msgspec

from koboshi.channels.telegram.codec import Read, UpdateReader
from koboshi.channels.telegram.types import User
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Inbound

JSON = dict[str, Any]

MAIN = ChannelName("telegram:main")
US: JSON = {"id": 42, "is_bot": True, "first_name": "Koboshi", "username": "koboshi_bot"}
ANN: JSON = {"id": 7, "is_bot": False, "first_name": "Ann", "last_name": "Lee", "username": "ann"}
BOB: JSON = {"id": 8, "is_bot": False, "first_name": "Bob"}
PRIVATE: JSON = {"id": 7, "type": "private", "first_name": "Ann"}
GROUP: JSON = {"id": -55, "type": "group", "title": "Friends"}
SUPERGROUP: JSON = {"id": -1001234, "type": "supergroup", "title": "Work"}
FORUM: JSON = {**SUPERGROUP, "is_forum": True}
DATE = 1_763_240_400


def a_reader(chars_max: int = 64_000) -> UpdateReader:
    me = User(id=42, is_bot=True, first_name="Koboshi", username="koboshi_bot")
    return UpdateReader(channel=MAIN, me=me, chars_max=chars_max)


def message(text: str = "", chat: JSON = PRIVATE, **fields: Any) -> JSON:
    said: JSON = {"message_id": 10, "chat": chat, "date": DATE, "from": ANN}
    return {**said, **({"text": text} if text else {}), **fields}


def update(number: int = 1, **kinds: Any) -> bytes:
    return msgspec.json.encode({"update_id": number, **kinds})


def read(raw: bytes) -> Read:
    return a_reader().read(raw)


def inbound(text: str = "", chat: JSON = PRIVATE, **fields: Any) -> Inbound:
    """What a message is read as."""
    return read(update(message=message(text, chat, **fields))).inbound


def marked(kind: str, words: str, text: str, **fields: Any) -> JSON:
    """An entity over `words` in `text`, counted as the platform counts."""
    offset = len(text[: text.index(words)].encode("utf-16-le")) // 2
    return {"type": kind, "offset": offset, "length": len(words.encode("utf-16-le")) // 2, **fields}


def naming(text: str, words: str = "@koboshi_bot", kind: str = "mention") -> list[JSON]:
    return [marked(kind, words, text)]


def pressed(press: str, on: JSON | None, **fields: Any) -> bytes:
    query: JSON = {"id": "77", "from": ANN, "chat_instance": "1", "data": press, **fields}
    return update(callback_query=query if on is None else {**query, "message": on})


DEEP = 5_000
HOSTILE = {
    "nothing": b"",
    "null": b"null",
    "a number": b"5",
    "no number": b'{"message":{}}',
    "cut off": b'{"update_id":6,"message":{"message_id":',
    "words for a number": b'{"update_id":"6"}',
    "a fraction": b'{"update_id":6.5}',
    "no chat": b'{"update_id":6,"message":{"message_id":1,"text":"x"}}',
    "a chat without an id": b'{"update_id":6,"message":{"message_id":1,"chat":{},"text":"x"}}',
    "a list for a message": b'{"update_id":6,"message":[]}',
    "a null for a text": b'{"update_id":6,"message":{"message_id":1,"chat":{"id":1},"text":null}}',
    "half a character": b'{"update_id":6,"message":{"chat":{"id":7},"text":"\\ud83d"}}',
    "no UTF-8": b'{"update_id":6,"message":{"message_id":1,"chat":{"id":7},"text":"\xff\xfe"}}',
    "deep lists": b'{"update_id":6,"x":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep answers": b'{"update_id":6,"message":'
    + b'{"message_id":1,"chat":{"id":7},"reply_to_message":' * DEEP
    + b"1"
    + b"}" * DEEP
    + b"}",
    "a control character": b'{"update_id":6,"x":"\x01"}',
}
