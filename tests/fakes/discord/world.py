"""One bot's Discord, in memory: what people do there, and what they see."""

import itertools
import re
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from tests.fakes.discord.state import (
    HISTORY,
    JSON,
    SEND,
    VIEW,
    ChannelType,
    DiscordChannel,
    DiscordMessage,
    DiscordUser,
    Guild,
    Ids,
    StoredAttachment,
    stamp_of,
)

GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES, MESSAGE_CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15
BOT_ID = 1_100_000_000_000_000_001
LINK_S = 86_400
"""How long an address of an attachment is good for."""
_MENTION = re.compile(r"<@!?(\d+)>")

Shape = Callable[[int], JSON | None]
"""An event for a session with these intents; None if it is not told of it."""
PERMISSIONS = {"view": VIEW, "send": SEND, "history": HISTORY}


class DiscordWorld:
    def __init__(self, *, bot_id: int = BOT_ID, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._ahead_s = 0.0
        self.ids = Ids()
        self.bot = DiscordUser(bot_id, "Koboshi", is_bot=True)
        self.users: dict[int, DiscordUser] = {bot_id: self.bot}
        self.guilds: dict[int, Guild] = {}
        self.channels: dict[int, DiscordChannel] = {}
        self.interactions: dict[int, JSON] = {}
        self.files: dict[int, StoredAttachment] = {}
        self.commands: list[JSON] = []
        self.has_message_content = True
        """The switch in the Developer Portal."""
        self.base = ""
        self.dispatch: Callable[[str, Shape], None] = lambda name, shape: None
        self._tokens = itertools.count(1)

    def clock(self) -> float:
        return self._clock() + self._ahead_s

    def forward(self, seconds: float) -> None:
        """Time passes on the platform."""
        self._ahead_s += seconds

    def next_id(self) -> int:
        return self.ids.next(self.clock())

    # People and places

    def user(self, name: str) -> DiscordUser:
        made = DiscordUser(self.next_id(), name)
        self.users[made.user_id] = made
        return made

    def other_bot(self, name: str) -> DiscordUser:
        made = self.user(name)
        made.is_bot = True
        return made

    def guild(self, name: str = "house", owner: DiscordUser | int | None = None) -> Guild:
        """A server that the bot joins now."""
        number = self.next_id()
        person = self.user("Owner") if owner is None else self._user(owner)
        made = Guild(number, name, person, self.bot, stamp_of(number))
        self.guilds[number] = made
        self.dispatch("GUILD_CREATE", lambda intents: _if(intents & GUILDS, made.as_created))
        return made

    def text_channel(self, guild: Guild | int, name: str = "general") -> DiscordChannel:
        return self._channel(ChannelType.TEXT, self._guild(guild), name)

    def forum(self, guild: Guild | int, name: str = "questions") -> DiscordChannel:
        return self._channel(ChannelType.FORUM, self._guild(guild), name)

    def thread(
        self,
        parent: DiscordChannel | int,
        name: str = "work",
        owner: DiscordUser | int | None = None,
        channel_id: int | None = None,
    ) -> DiscordChannel:
        """A public thread that was started without a message, unless that has given its id."""
        above = self._place(parent)
        assert above.guild is not None
        number = channel_id or self.next_id()
        made = DiscordChannel(number, ChannelType.PUBLIC_THREAD, name, above.guild, above)
        made.owner = above.guild.owner if owner is None else self._user(owner)
        self._add(made)
        shown = made.as_json() | {"newly_created": True}
        if made.may(VIEW):
            self.dispatch("THREAD_CREATE", lambda intents: _if(intents & GUILDS, lambda: shown))
        return made

    def post(
        self, forum: DiscordChannel | int, user: DiscordUser | int, title: str, text: str
    ) -> DiscordMessage:
        """A post in a forum is a thread, and its first message has the id of the thread."""
        thread = self.thread(forum, title, user)
        self._place(forum).last_message_id = thread.channel_id
        return self._write(thread, self._user(user), text, message_id=thread.channel_id)

    def dm(self, user: DiscordUser | int) -> DiscordChannel:
        """The one private channel of a person and the bot."""
        person = self._user(user)
        for each in self.channels.values():
            if each.recipient is person:
                return each
        made = DiscordChannel(self.next_id(), ChannelType.DM, "", recipient=person)
        self.channels[made.channel_id] = made
        return made

    def deny(self, channel: DiscordChannel | int, permission: str) -> None:
        self._place(channel).denied |= PERMISSIONS[permission]

    def allow(self, channel: DiscordChannel | int, permission: str) -> None:
        self._place(channel).denied &= ~PERMISSIONS[permission]

    def archive(self, thread: DiscordChannel | int, *, locked: bool = False) -> None:
        place = self._place(thread)
        place.is_archived, place.is_locked = True, locked
        shown = place.as_json()
        self.dispatch("THREAD_UPDATE", lambda intents: _if(intents & GUILDS, lambda: shown))

    def remove_channel(self, channel: DiscordChannel | int) -> None:
        place = self._place(channel)
        place.is_gone = True
        name = "THREAD_DELETE" if place.is_thread else "CHANNEL_DELETE"
        shown = place.as_json()
        self.dispatch(name, lambda intents: _if(intents & GUILDS, lambda: shown))

    # What people do

    def say(
        self,
        channel: DiscordChannel | int,
        user: DiscordUser | int,
        text: str,
        *,
        reply_to: DiscordMessage | int | None = None,
        passes_on: DiscordMessage | None = None,
        files: dict[str, str] | None = None,
        webhook: bool = False,
    ) -> DiscordMessage:
        place = self._place(channel)
        answered = None if reply_to is None else self._message(place, reply_to)
        return self._write(
            place,
            self._user(user),
            text,
            kind=19 if answered is not None else 0,
            answers=answered,
            passes_on=passes_on,
            webhook_id=self.next_id() if webhook else None,
            attachments=tuple(
                self.keep(name, "text/plain", held.encode()) for name, held in (files or {}).items()
            ),
        )

    def edit(self, message: DiscordMessage, text: str) -> None:
        message.content = text
        message.edited = stamp_of(self.next_id())
        self.tell(message, "MESSAGE_UPDATE")

    def delete(self, message: DiscordMessage) -> None:
        message.is_deleted = True
        del message.channel.messages[message.message_id]
        gone: JSON = {
            "id": str(message.message_id),
            "channel_id": str(message.channel.channel_id),
            **_guild_of(message.channel),
        }
        self.dispatch("MESSAGE_DELETE", lambda intents: _if(intents & _told(message), lambda: gone))

    def press(
        self, message: DiscordMessage | list[int], user: DiscordUser | int, label: str
    ) -> JSON:
        """A person presses a button. They see that it failed unless it is answered within 3 s."""
        found = self._named(message)
        buttons = [each for row in found.components for each in row["components"]]
        (button,) = [each for each in buttons if label in (each["label"], each["custom_id"])]
        pressed = {"component_type": 2, "custom_id": button["custom_id"], "id": 1}
        person = self._user(user)
        return self._interaction(3, found.channel, person, pressed, found)

    def slash(
        self, channel: DiscordChannel | int, user: DiscordUser | int, name: str, words: str = ""
    ) -> JSON:
        """A person uses a command that was registered."""
        (command,) = [each for each in self.commands if each["name"] == name]
        given: JSON = {"id": command["id"], "name": name, "type": 1}
        if words:
            (option,) = command["options"]
            given["options"] = [{"name": option["name"], "type": 3, "value": words}]
        return self._interaction(2, self._place(channel), self._user(user), given, None)

    # What people see

    def messages_seen(self, channel: DiscordChannel | int) -> list[DiscordMessage]:
        return list(self._place(channel).messages.values())

    def texts_seen(self, channel: DiscordChannel | int) -> list[str]:
        return [each.content for each in self.messages_seen(channel)]

    def copies(self, text: str) -> list[DiscordMessage]:
        """Every message of the bot, anywhere, that holds `text` now."""
        said = (each for place in self.channels.values() for each in place.messages.values())
        return [each for each in said if each.author is self.bot and text in each.content]

    # What both sides of the platform use

    def tell(self, message: DiscordMessage, name: str = "MESSAGE_CREATE") -> None:
        if message.channel.guild is not None and not message.channel.may(VIEW):
            return

        def shape(intents: int) -> JSON | None:
            if not intents & _told(message):
                return None
            shown = self.shown(message, can_read=bool(intents & MESSAGE_CONTENT))
            shown |= _guild_of(message.channel) | {"channel_type": int(message.channel.kind)}
            if message.channel.guild is not None and message.webhook_id is None:
                shown["member"] = message.author.as_member(message.channel.guild.joined)
            return shown

        self.dispatch(name, shape)

    def shown(self, message: DiscordMessage, *, can_read: bool, nested: bool = False) -> JSON:
        """A message as the bot is told of it. `nonce` is not promised in the history, so only the
        answer to a send and its event have it."""
        is_open = can_read or message.author is self.bot or self.bot in message.mentions
        is_open = is_open or message.channel.recipient is not None
        shown: JSON = {
            "id": str(message.message_id),
            "channel_id": str(message.channel.channel_id),
            "author": message.author.as_json(),
            "content": message.content if is_open else "",
            "timestamp": stamp_of(message.message_id),
            "edited_timestamp": message.edited,
            "tts": False,
            "mention_everyone": False,
            "mentions": [each.as_json() for each in message.mentions],
            "mention_roles": [],
            "attachments": self._attached(message) if is_open else [],
            "embeds": [],
            "pinned": False,
            "type": message.kind,
            "flags": 0,
            "components": list(message.components) if is_open else [],
        }
        if message.webhook_id is not None:
            shown["webhook_id"] = str(message.webhook_id)
        if message.reference is not None:
            shown["message_reference"] = message.reference
        if message.answers is not None and not nested:
            answered = message.answers
            shown["referenced_message"] = (
                None
                if answered.is_deleted
                else self.shown(answered, can_read=can_read, nested=True)
            )
        if message.passes_on is not None:
            kept = ("content", "timestamp", "edited_timestamp", "attachments", "embeds", "type",
                    "mentions", "mention_roles", "flags", "components")  # fmt: skip
            whole = self.shown(message.passes_on, can_read=is_open, nested=True)
            shown["message_snapshots"] = [{"message": {name: whole[name] for name in kept}}]
        return shown

    def keep(self, name: str, kind: str, content: bytes) -> StoredAttachment:
        made = StoredAttachment(self.next_id(), name, kind, content)
        self.files[made.attachment_id] = made
        return made

    def add_message(self, message: DiscordMessage) -> None:
        place = message.channel
        place.messages[message.message_id] = message
        place.last_message_id = message.message_id
        if place.is_archived and not place.is_locked:
            place.is_archived = False
        self.tell(message)

    def mentioned(self, text: str) -> tuple[DiscordUser, ...]:
        found = (self.users.get(int(number)) for number in _MENTION.findall(text))
        return tuple(dict.fromkeys(each for each in found if each is not None))

    def _attached(self, message: DiscordMessage) -> list[JSON]:
        until = f"{int(self.clock() + LINK_S):x}"
        place = message.channel.channel_id
        folder = f"{self.base}/attachments/{place}"
        return [
            each.as_json(f"{folder}/{each.attachment_id}/{quote(each.name, safe='')}?ex={until}")
            for each in message.attachments
        ]

    def _write(
        self, place: DiscordChannel, author: DiscordUser, text: str, **how: Any
    ) -> DiscordMessage:
        number = how.pop("message_id", None) or self.next_id()
        made = DiscordMessage(number, place, author, text, at=self.clock(), **how)
        answered = made.answers.author if made.answers is not None else None
        named = self.mentioned(text)
        made.mentions = tuple(dict.fromkeys([*named, *([answered] if answered else [])]))
        self.add_message(made)
        return made

    def _interaction(
        self,
        kind: int,
        place: DiscordChannel,
        user: DiscordUser,
        given: JSON,
        message: DiscordMessage | None,
    ) -> JSON:
        number = self.next_id()
        made: JSON = {
            "id": str(number),
            "application_id": str(self.bot.user_id),
            "type": kind,
            "data": given,
            "token": f"interaction-token-{next(self._tokens)}",
            "version": 1,
            "channel_id": str(place.channel_id),
            "channel": place.as_json(),
            "app_permissions": "0",
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": {},
            "context": 0 if place.guild is not None else 1,
            "attachment_size_limit": 10_485_760,
        }
        if place.guild is None:
            made["user"] = user.as_json()
        else:
            made |= _guild_of(place) | {"guild_locale": "en-US"}
            made["guild"] = {"id": made["guild_id"], "locale": "en-US", "features": []}
            member = user.as_member(place.guild.joined)
            made["member"] = member | {"user": user.as_json(), "permissions": "0"}
        if message is not None:
            made["message"] = self.shown(message, can_read=True)
        self.interactions[number] = {"asked": made, "at": self.clock(), "answer": None}
        self.dispatch("INTERACTION_CREATE", lambda intents: made)
        return made

    def _channel(self, kind: ChannelType, guild: Guild, name: str) -> DiscordChannel:
        made = DiscordChannel(self.next_id(), kind, name, guild)
        self._add(made)
        shown = made.as_json()
        self.dispatch("CHANNEL_CREATE", lambda intents: _if(intents & GUILDS, lambda: shown))
        return made

    def _add(self, channel: DiscordChannel) -> None:
        assert channel.guild is not None
        channel.guild.channels.append(channel)
        self.channels[channel.channel_id] = channel

    def _named(self, message: DiscordMessage | Iterable[int]) -> DiscordMessage:
        if isinstance(message, DiscordMessage):
            return message
        channel_id, message_id = message
        return self.channels[channel_id].messages[message_id]

    def _message(self, place: DiscordChannel, message: DiscordMessage | int) -> DiscordMessage:
        return message if isinstance(message, DiscordMessage) else place.messages[message]

    def _user(self, user: DiscordUser | int) -> DiscordUser:
        return user if isinstance(user, DiscordUser) else self.users[user]

    def _guild(self, guild: Guild | int) -> Guild:
        return guild if isinstance(guild, Guild) else self.guilds[guild]

    def _place(self, channel: DiscordChannel | int) -> DiscordChannel:
        return channel if isinstance(channel, DiscordChannel) else self.channels[channel]


def _if(condition: object, make: Callable[[], JSON]) -> JSON | None:
    return make() if condition else None


def _told(message: DiscordMessage) -> int:
    return DIRECT_MESSAGES if message.channel.guild is None else GUILD_MESSAGES


def _guild_of(place: DiscordChannel) -> JSON:
    return {} if place.guild is None else {"guild_id": str(place.guild.guild_id)}
