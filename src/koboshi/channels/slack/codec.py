"""What Slack tells to what the gateway understands. Pure.

The key of a message is its conversation and its time stamp, which together name it for good. So the
same message has the same key in a `message` event, in an `app_mention`, in a repeat of either, and
in the history. What cannot be read is kept as it came, and passed over.
"""

import hashlib
import re
from dataclasses import dataclass, replace

import msgspec

from koboshi.channels.common.choices import read_press
from koboshi.channels.common.reading import DELETED, fitting, media_type
from koboshi.channels.slack.types import (
    EventCallback,
    EventKind,
    SlackCommand,
    SlackEvent,
    SlackFile,
    SlackMessage,
    SlackPress,
    SlackShared,
)
from koboshi.channels.slack.words import names, plain_words, without_name
from koboshi.domain.files import RECEIVED, Attachment, safe_name
from koboshi.domain.ids import ChannelName
from koboshi.domain.inbox import Words
from koboshi.domain.phrases import excerpt
from koboshi.domain.route import Route
from koboshi.ports.channel import Inbound

RAW_CHARS_MAX = 16_000
"""How much of what cannot be read is kept."""
SAID = frozenset({"", "file_share", "thread_broadcast", "me_message"})
"""The subtypes that are words of a person; all others tell of something that happened."""
JOINED = frozenset({"channel_join", "group_join"})
_TS = re.compile(r"[0-9]{1,12}\.[0-9]{1,6}")
_EVENT_ID = re.compile(rb'"event_id"\s*:\s*"(Ev[A-Za-z0-9]{1,64})"')
_callback = msgspec.json.Decoder(EventCallback)
_kind = msgspec.json.Decoder(EventKind)
_event = msgspec.json.Decoder(SlackEvent)
_press = msgspec.json.Decoder(SlackPress)
_command = msgspec.json.Decoder(SlackCommand)
_UNREADABLE = (msgspec.DecodeError, ValueError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackReader:
    """Reads what one app is told."""

    channel: ChannelName
    me: str
    """The user id of the app."""
    bot_id: str
    chars_max: int
    commands: frozenset[str] = frozenset()
    """The names of the chat commands, which the slash command can be followed by."""

    def read(self, kind: str, payload: bytes) -> Inbound | None:
        """What the payload of an envelope of this kind says to us; None where there is nothing to
        keep of it."""
        try:
            match kind:
                case "events_api":
                    return self._event(_callback.decode(payload))
                case "interactive":
                    return self._pressed(_press.decode(payload))
                case "slash_commands":
                    return self._commanded(_command.decode(payload))
                case _:
                    return None
        except _UNREADABLE as error:
            return self._unreadable(payload, str(error))

    def message(self, message: SlackMessage, chat: str) -> Inbound | None:
        """What a message of the history of a conversation says to us, as it is now."""
        if message.subtype not in SAID or not _TS.fullmatch(message.ts):
            return None
        return self._said(message, chat)

    def _event(self, callback: EventCallback) -> Inbound | None:
        raw = bytes(callback.event)
        if _kind.decode(raw).type not in {"message", "app_mention"}:
            return None
        event = _event.decode(raw)
        match event.subtype:
            case "message_changed":
                return self._edited(event)
            case "message_deleted":
                return self._deleted(event)
            case subtype if subtype in SAID:
                _check(event.ts, event.channel)
                return self._said(event, event.channel)
            case _:
                return None

    def _edited(self, event: SlackEvent) -> Inbound | None:
        """New words for a message. Slack also tells of links that it unfolds and of replies that it
        counts: these change no words."""
        new, old = event.message, event.previous_message
        if new is None or new.edited is None or new.subtype not in SAID:
            return None
        if old is not None and old.words == new.words and old.attached == new.attached:
            return None
        _check(new.ts, event.channel)
        inbound = self._said(new, event.channel)
        if inbound is None:
            return None
        edit = f"{inbound.external_id}/{new.edited.ts}"
        return replace(inbound, external_id=edit, edits=inbound.external_id)

    def _deleted(self, event: SlackEvent) -> Inbound | None:
        """A message that still waits is not to be answered any more."""
        old = event.previous_message
        if old is None or old.subtype not in SAID:
            return None
        _check(event.deleted_ts, event.channel)
        inbound = self._said(old, event.channel)
        if inbound is None:
            return None
        words = replace(inbound.words, text=DELETED, files=())
        key = inbound.external_id
        return replace(inbound, external_id=f"{key}/deleted", edits=key, words=words)

    def _said(self, message: SlackMessage, chat: str) -> Inbound | None:
        if message.bot_id or not message.user or message.user == self.me:
            return None  # bots that listen to each other would never end
        is_private = is_private_chat(chat)
        is_addressed = is_private or self._is_for_us(message)
        own = plain_words(without_name(message.words, self.me)).strip()
        text = "\n".join(filter(None, [own, *map(_passed_on, message.shared)]))
        files = _attachments(message, chat, self.channel)
        if not text and not files:
            return None
        words = Words(
            text=fitting(text, self.chars_max),
            sent_ms=ms_of(message.ts),
            anchor=message.ts,
            files=files,
            is_forwarded=not own and bool(message.shared),
        )
        return Inbound(
            route=Route(
                channel=self.channel, chat=chat, thread=_thread_of(message, chat, is_addressed)
            ),
            external_id=f"{chat}/{message.ts}",
            sender=message.user,
            words=words,
            is_addressed=is_addressed,
            is_private=is_private,
            is_group=not is_private,
        )

    def _is_for_us(self, message: SlackMessage) -> bool:
        """In a channel: they name us, or answer below a message of ours."""
        return names(message.words, self.me) or message.parent_user_id == self.me

    def _pressed(self, press: SlackPress) -> Inbound | None:
        if press.type != "block_actions" or not press.actions:
            return None
        place, action = press.container, press.actions[0]
        chat = place.channel_id or press.channel.id
        button = read_press(action.value)
        if button is None:
            return None
        _check(action.action_ts, chat)
        question, choice = button
        words = Words(
            text="",
            sent_ms=ms_of(action.action_ts),
            anchor=place.message_ts,
            question=question,
            choice_id=choice,
        )
        is_private = is_private_chat(chat)
        return Inbound(
            route=Route(channel=self.channel, chat=chat, thread=place.thread_ts),
            external_id=f"{chat}/{place.message_ts}/{press.user.id}/{action.action_ts}",
            sender=press.user.id,
            words=words,
            sender_name=press.user.name or press.user.username,
            is_private=is_private,
            is_group=not is_private,
        )

    def _commanded(self, given: SlackCommand) -> Inbound | None:
        """`/koboshi stop` is `/stop`; other words behind it are a message."""
        said = given.text.strip() or "/help"
        first = said.split(maxsplit=1)[0].removeprefix("/")
        text = f"/{said.removeprefix('/')}" if first in self.commands else said
        if not given.trigger_id or not given.channel_id or not given.user_id:
            raise ValueError("a command without its place")
        is_private = is_private_chat(given.channel_id)
        return Inbound(
            route=Route(channel=self.channel, chat=given.channel_id),
            external_id=f"command/{given.trigger_id}",
            sender=given.user_id,
            words=Words(text=fitting(plain_words(text), self.chars_max), sent_ms=0),
            sender_name=given.user_name,
            is_private=is_private,
            is_group=not is_private,
        )

    def _unreadable(self, raw: bytes, why: str) -> Inbound:
        found = _EVENT_ID.search(raw)
        key = found[1].decode() if found else f"h{hashlib.sha256(raw).hexdigest()}"
        return Inbound(
            route=Route(channel=self.channel, chat=""),
            external_id=key,
            sender="",
            words=Words(text=raw[:RAW_CHARS_MAX].decode("utf-8", "replace"), sent_ms=0),
            ignored=f"malformed: {why[:200]}",
        )


def _passed_on(shared: SlackShared) -> str:
    who = f" from {excerpt(shared.author_name)}" if shared.author_name else ""
    return f"[forwarded{who}] {plain_words(shared.text or '')}"


def is_private_chat(chat: str) -> bool:
    """Whether only one person and we read a conversation."""
    return chat.startswith("D")


def ms_of(ts: str) -> int:
    """A time stamp in milliseconds; 0 where it is none."""
    if not _TS.fullmatch(ts):
        return 0
    seconds, _, micros = ts.partition(".")
    return int(seconds) * 1000 + int(micros.ljust(6, "0")) // 1000


def is_ts(words: str) -> bool:
    return _TS.fullmatch(words) is not None


def _check(ts: str, chat: str) -> None:
    if not is_ts(ts) or not chat:
        raise ValueError("a message without its place")


def _thread_of(message: SlackMessage, chat: str, is_addressed: bool) -> str:
    """Where the answer goes. In a channel, words to us that stand in no thread begin one, so that
    the channel is not flooded; alone with a person, words stay where they are."""
    if message.thread_ts:
        return message.thread_ts
    return message.ts if is_addressed and not is_private_chat(chat) else ""


def _attachments(message: SlackMessage, chat: str, channel: ChannelName) -> tuple[Attachment, ...]:
    folder = f"{RECEIVED}/{safe_name(channel.replace(':', '-'), 'slack')}"
    return tuple(
        Attachment(
            reference=file.id,
            path=f"{folder}/{safe_name(chat, 'chat')}-{safe_name(file.id, 'file')}-{_name(file)}",
            kind=media_type(file.mimetype) or "file",
            size=max(file.size, 0),
        )
        for file in message.attached
    )


def _name(file: SlackFile) -> str:
    return safe_name(file.name or file.title or "", "file")
