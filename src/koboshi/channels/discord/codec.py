"""Events of the gateway to what the gateway of ours understands. Pure.

Messages and interactions of one bot. What cannot be read is kept as it came, and passed over: it
never stops the others.
"""

import hashlib
from dataclasses import dataclass, replace

from koboshi.channels.common.choices import read_press
from koboshi.channels.common.reading import fitting
from koboshi.channels.discord.places import PRIVATE, THREADS, time_of
from koboshi.channels.discord.said import attachments_of, is_passed_on, said_in
from koboshi.channels.discord.types import (
    ChannelMessage,
    DiscordPerson,
    DiscordPlace,
    Interaction,
)
from koboshi.domain.ids import ChannelName
from koboshi.domain.inbox import Words
from koboshi.domain.route import Route
from koboshi.ports.channel import Inbound

SPOKEN = frozenset({0, 19})
"""Types of messages that people write: plain ones and replies (`message.mdx`, Message Types)."""
COMMAND, PRESS = 2, 3
"""Types of interactions."""
RAW_CHARS_MAX = 16_000
"""How much of an event that cannot be read is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReader:
    """Reads the events of one bot."""

    channel: ChannelName
    me: DiscordPerson
    chars_max: int

    def message(self, message: ChannelMessage, place: DiscordPlace) -> Inbound:
        """What a message says to us."""
        author = message.author
        if message.kind not in SPOKEN or author is None:
            return self._nothing(message, place, "not-a-message")
        is_private = place.kind == PRIVATE
        if message.webhook_id is not None or author.is_bot:
            return self._nothing(message, place, "not-from-a-person")
        text, files = said_in(message, self.me.name), attachments_of(message, self.channel)
        if not text and not files:
            return self._nothing(message, place, "nothing-said")
        words = Words(
            text=fitting(text, self.chars_max),
            sent_ms=time_of(message.id),
            anchor=message.id,
            files=files,
            is_forwarded=is_passed_on(message),
            replies_to=self._answered(message),
        )
        return Inbound(
            route=self.route(place),
            external_id=message_key(message.id),
            sender=author.id,
            words=words,
            sender_name=author.name,
            is_addressed=is_private or self._is_for_us(message),
            is_private=is_private,
            is_group=not is_private,
        )

    def edited(self, message: ChannelMessage, place: DiscordPlace) -> Inbound:
        """The same for a message that has other words now."""
        key = f"e{message.id}:{message.edited_timestamp or ''}"
        read = self.message(message, place)
        return replace(read, external_id=key, edits=message_key(message.id))

    def interaction(self, used: Interaction, place: DiscordPlace) -> Inbound:
        """What a button or a command says to us."""
        person, asked = used.person, used.used
        if used.kind == PRESS and asked is not None:
            words = self._pressed(used, asked.custom_id)
        elif used.kind == COMMAND and asked is not None:
            behind = " ".join(str(each.value) for each in asked.options)
            text = f"/{asked.name} {behind}".strip()
            words = Words(text=fitting(text, self.chars_max), sent_ms=time_of(used.id))
        else:
            words = None
        is_private = place.kind == PRIVATE
        return Inbound(
            route=self.route(place),
            external_id=f"i{used.id}",
            sender="" if person is None else person.id,
            words=words or Words(text="", sent_ms=0),
            ignored=None if words is not None and person is not None else "not-our-button",
            sender_name="" if person is None else person.name,
            is_private=is_private,
            is_group=not is_private,
        )

    def unreadable(self, raw: bytes, why: str) -> Inbound:
        """An event that is not what it should be."""
        kept = raw[:RAW_CHARS_MAX].decode("utf-8", "replace")
        return Inbound(
            route=Route(channel=self.channel, chat=""),
            external_id=f"h{hashlib.sha256(raw).hexdigest()}",
            sender="",
            words=Words(text=kept, sent_ms=0),
            ignored=f"malformed: {why[:200]}",
        )

    def route(self, place: DiscordPlace) -> Route:
        """A thread belongs to the channel that it is in."""
        if place.kind in THREADS and place.parent_id:
            return Route(channel=self.channel, chat=place.parent_id, thread=place.id)
        return Route(channel=self.channel, chat=place.id)

    def _pressed(self, used: Interaction, custom_id: str) -> Words | None:
        button = read_press(custom_id)
        if button is None or used.message is None:
            return None
        question, choice_id = button
        anchor = used.message.id
        sent_ms = time_of(used.id)
        return Words(
            text="", sent_ms=sent_ms, anchor=anchor, question=question, choice_id=choice_id
        )

    def _is_for_us(self, message: ChannelMessage) -> bool:
        """In a server: they name us, or answer us."""
        if self._answered(message):
            return True
        return any(person.id == self.me.id for person in message.mentions)

    def _answered(self, message: ChannelMessage) -> str:
        """The message of ours that it replies to; empty if none."""
        answered = message.referenced_message
        if answered is None or answered.author is None or answered.author.id != self.me.id:
            return ""
        return answered.id

    def _nothing(self, message: ChannelMessage, place: DiscordPlace, why: str) -> Inbound:
        """It is not for us: that it was there is kept, its words are not."""
        return Inbound(
            route=self.route(place),
            external_id=message_key(message.id),
            sender="" if message.author is None else message.author.id,
            words=Words(text="", sent_ms=time_of(message.id)),
            ignored=why,
        )


def message_key(message_id: str) -> str:
    """One message is one entry, whether the gateway tells of it or the history does."""
    return f"m{message_id}"
