"""Updates to what the gateway understands. Pure.

An update that cannot be read is kept as it came, and passed over: it never stops the others.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec

from koboshi.channels.common.choices import read_press
from koboshi.channels.common.formatting.formatted import UTF_16
from koboshi.channels.common.reading import fitting
from koboshi.channels.telegram.message_text import attachments_of, said_in
from koboshi.channels.telegram.types import Callback, TelegramEntity, TelegramMessage, Update, User
from koboshi.domain.ids import ChannelName
from koboshi.domain.inbox import Words
from koboshi.domain.route import Route
from koboshi.ports.channel import Inbound

RAW_CHARS_MAX = 16_000
"""How much of an update that cannot be read is kept."""
KINDS = ("message", "edited_message", "callback_query")
"""The updates that we ask for."""

_update = msgspec.json.Decoder(Update)
_batch = msgspec.json.Decoder(list[msgspec.Raw])
_NUMBER = re.compile(rb'"update_id"\s*:\s*(\d{1,15})(?!\d)')
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},]', re.DOTALL)
_TAKEN = re.compile(rb'\s*\{\s*"ok"\s*:\s*true\s*,\s*"result"\s*:\s*\[')
NUMBER_MAX = 10**15
SECONDS_MAX = 253_402_300_799
"""The last second of the year 9999: nothing is sent later."""
ALBUMS_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReader:
    """Reads the updates of one bot."""

    channel: ChannelName
    me: User
    chars_max: int
    albums: dict[str, None] = field(default_factory=dict)
    """Albums of groups that are for us, the newest last: only one of their pictures says so."""

    def read(self, raw: bytes) -> "Read":
        """What an update says to us."""
        try:
            update = _update.decode(raw)
            inbound = self._inbound(update)
            number = update.update_id if 0 < update.update_id < NUMBER_MAX else None
            return Read(inbound=inbound, number=number, callback=_callback(update))
        except (msgspec.DecodeError, ValueError, OverflowError, RecursionError) as error:
            return Read(inbound=self._unreadable(raw, str(error)), number=number_of(raw))

    def _inbound(self, update: Update) -> Inbound:
        key = f"u{update.update_id}"
        if update.message is not None:
            return self._message(update.message, message_key(update.message))
        if update.edited_message is not None:
            edited = update.edited_message
            return replace(self._message(edited, key), edits=message_key(edited))
        if update.callback_query is not None:
            return self._pressed(update.callback_query)
        route = Route(channel=self.channel, chat="")
        words = Words(text="", sent_ms=0)
        return Inbound(
            route=route, external_id=key, sender="", words=words, ignored="not-a-message"
        )

    def _message(self, message: TelegramMessage, key: str) -> Inbound:
        moved = _moved(message)
        if moved is not None:
            return self._nothing(message, key, "moved", chat=moved[0], moved_to=moved[1])
        topic, by = message.forum_topic_created, message.from_
        if topic is not None and by is not None and by.id == self.me.id:
            return replace(self._nothing(message, key, "topic-made"), begins=topic.name)
        named, message = message, self._without_our_name(message)
        text, files = said_in(message), attachments_of(message, self.channel)
        if not text and not files:
            return self._nothing(message, key, "nothing-said")
        sender = message.from_
        if sender is None or sender.id == self.me.id or message.chat.type == "channel":
            return self._nothing(message, key, "not-from-a-person")
        is_addressed = message.chat.type == "private" or self._is_for_us(named)
        if not is_addressed and _is_for_a_bot(named):
            return self._nothing(message, key, "not-addressed")
        words = Words(
            text=fitting(text, self.chars_max),
            sent_ms=_sent_ms(message),
            anchor=str(message.message_id),
            files=files,
            group=message.media_group_id,
            is_forwarded=message.forward_origin is not None,
            replies_to=self._answered(named),
        )
        return Inbound(
            route=self._route(message),
            external_id=key,
            sender=sender_of(message),
            words=words,
            sender_name=_name_of(message),
            is_addressed=is_addressed,
            is_private=message.chat.type == "private",
            is_group=message.chat.type != "private",
        )

    def _nothing(
        self, message: TelegramMessage, key: str, why: str, *, chat: str = "", moved_to: str = ""
    ) -> Inbound:
        """It is not for us: that it was there is kept, its words are not."""
        route = self._route(message)
        return Inbound(
            route=replace(route, chat=chat) if chat else route,
            external_id=key,
            sender=sender_of(message),
            words=Words(text="", sent_ms=_sent_ms(message)),
            ignored=why,
            moved_to=moved_to,
        )

    def _pressed(self, callback: Callback) -> Inbound:
        message, key = callback.message, f"c{callback.id}"
        button = read_press(callback.pressed)
        if message is None or button is None:
            place = Route(channel=self.channel, chat="")
            words = Words(text=callback.pressed[:64], sent_ms=0)
            return Inbound(
                route=place if message is None else self._route(message),
                external_id=key,
                sender=str(callback.from_.id),
                words=words,
                ignored="not-our-button",
            )
        words = Words(
            text="",
            sent_ms=0,
            anchor=str(message.message_id),
            question=button[0],
            choice_id=button[1],
        )
        return Inbound(
            route=self._route(message),
            external_id=key,
            sender=str(callback.from_.id),
            words=words,
            sender_name=callback.from_.name,
            is_private=message.chat.type == "private",
            is_group=message.chat.type != "private",
        )

    def _unreadable(self, raw: bytes, why: str) -> Inbound:
        number = number_of(raw)
        key = f"u{number}" if number is not None else f"h{hashlib.sha256(raw).hexdigest()}"
        kept = raw[:RAW_CHARS_MAX].decode("utf-8", "replace")
        return Inbound(
            route=Route(channel=self.channel, chat=""),
            external_id=key,
            sender="",
            words=Words(text=kept, sent_ms=0),
            ignored=f"malformed: {why[:200]}",
        )

    def _route(self, message: TelegramMessage) -> Route:
        return Route(channel=self.channel, chat=str(message.chat.id), thread=thread_of(message))

    def _is_for_us(self, message: TelegramMessage) -> bool:
        """In a group: they name us, answer us, or give a command that is not another bot's. An
        album is for us as a whole."""
        album = f"{message.chat.id}/{message.media_group_id}" if message.media_group_id else ""
        if not self._speaks_to_us(message):
            return album in self.albums
        if album:
            self.albums[album] = None
            while len(self.albums) > ALBUMS_MAX:
                del self.albums[next(iter(self.albums))]
        return True

    def _answered(self, message: TelegramMessage) -> str:
        """The message of ours that it replies to; empty if none. Every message in a topic replies
        to its beginning."""
        answered = message.reply_to_message
        if answered is None or answered.from_ is None or answered.from_.id != self.me.id:
            return ""
        is_topic = answered.message_id == message.message_thread_id
        return "" if is_topic else str(answered.message_id)

    def _speaks_to_us(self, message: TelegramMessage) -> bool:
        if self._answered(message):
            return True
        words = message.words.encode(UTF_16)
        return any(self._names_us(mark, words) for mark in message.marks)

    def _names_us(self, mark: TelegramEntity, words: bytes) -> bool:
        named = words[mark.offset * 2 : (mark.offset + mark.length) * 2].decode(UTF_16, "replace")
        match mark.type:
            case "text_mention":
                return mark.user is not None and mark.user.id == self.me.id
            case "mention":
                return named.casefold() == f"@{self.me.username}".casefold()
            case "bot_command" if mark.offset == 0:
                _, at, bot = named.partition("@")
                return not at or bot.casefold() == self.me.username.casefold()
            case _:
                return False

    def _without_our_name(self, message: TelegramMessage) -> TelegramMessage:
        """The words without our name at their beginning or end, which is how we are called."""
        name = re.escape(f"@{self.me.username}")
        words = re.sub(rf"^(/\w+){name}\b", r"\1", message.words, flags=re.IGNORECASE)
        words = re.sub(rf"^{name}\b[\s,:]*", "", words, flags=re.IGNORECASE)
        words = re.sub(rf"\s+{name}$", "", words, flags=re.IGNORECASE)
        return message.saying(words) if words.strip() else message


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """An update as it was read. `number` is None where not even that can be told."""

    inbound: Inbound
    number: int | None
    callback: str = ""
    """The platform waits to hear that this button was seen."""


def batch_of(body: msgspec.Raw) -> list[bytes]:
    """The updates of a batch, each as it came. Raises msgspec.DecodeError."""
    return [bytes(raw) for raw in _batch.decode(body)]


def pieces_of(body: bytes) -> list[bytes] | None:
    """The updates in an answer that cannot be read as a whole, so that one of them does not keep
    the others from us; None if even their borders cannot be told."""
    taken = _TAKEN.match(body)
    if taken is None:
        return None
    pieces: list[bytes] = []
    begin, depth = taken.end(), 0
    for token in _TOKEN.finditer(body, begin):
        mark = token[0]
        if mark in b"{[":
            depth += 1
        elif (mark == b"," and depth == 0) or (mark == b"]" and depth == 0):
            pieces.append(body[begin : token.start()].strip())
            begin = token.end()
            if mark == b"]":
                return [piece for piece in pieces if piece]
        elif mark in b"]}":
            depth -= 1
    return None


def number_of(raw: bytes) -> int | None:
    """The number of an update that cannot be read otherwise."""
    found = _NUMBER.search(raw)
    return int(found[1]) if found else None


def next_offset(reads: Sequence[Read], offset: int) -> int:
    """What is asked for after these have been stored. It may be less than before: the platform
    counts from elsewhere after a quiet week. One without a number is passed over by count."""
    last, behind = offset - 1, 0
    for read in reads:
        behind = behind + 1 if read.number is None else 0
        last = last if read.number is None else read.number
    return last + 1 + (behind if last >= 0 else 0)


def message_key(message: TelegramMessage) -> str:
    """One message is one entry, however often and in whatever updates it comes."""
    return f"{message.chat.id}/{message.message_id}"


def thread_of(message: TelegramMessage) -> str:
    """The topic. Other threads of replies are no places of their own."""
    is_topic = message.is_topic_message or message.chat.type == "private"
    return str(message.message_thread_id) if is_topic and message.message_thread_id else ""


def sender_of(message: TelegramMessage) -> str:
    """Whose words they are: a person who writes in the name of a chat is that chat."""
    if message.sender_chat is not None:
        return str(message.sender_chat.id)
    return "" if message.from_ is None else str(message.from_.id)


def _is_for_a_bot(message: TelegramMessage) -> bool:
    """Whether words that are not said to us are another bot's: a command to it, or its own words.
    Bots that listen to each other would never end."""
    first = message.words.split(maxsplit=1)[:1]
    is_command = bool(first) and first[0].startswith("/") and "@" in first[0]
    sender = message.from_
    return is_command or (sender is not None and sender.is_bot and message.sender_chat is None)


def _name_of(message: TelegramMessage) -> str:
    """What they call themselves whose words they are."""
    if message.sender_chat is not None:
        return message.sender_chat.title
    return "" if message.from_ is None else message.from_.name


def _callback(update: Update) -> str:
    return "" if update.callback_query is None else update.callback_query.id


def _moved(message: TelegramMessage) -> tuple[str, str] | None:
    """From which chat to which a group has moved, if that is what the message says."""
    if message.migrate_to_chat_id is not None:
        return str(message.chat.id), str(message.migrate_to_chat_id)
    if message.migrate_from_chat_id is not None:
        return str(message.migrate_from_chat_id), str(message.chat.id)
    return None


def _sent_ms(message: TelegramMessage) -> int:
    """When it was sent; 0 where that cannot be."""
    return message.date * 1000 if 0 < message.date <= SECONDS_MAX else 0
