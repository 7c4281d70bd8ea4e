"""People, chats, topics and messages as the platform keeps them, and how they are numbered."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

JSON = dict[str, Any]

TOPIC_COLOR = 0x6FB9F0
SUPERGROUP_BASE = -1_000_000_000_000


class ChatKind(StrEnum):
    PRIVATE = "private"
    GROUP = "group"
    SUPERGROUP = "supergroup"
    CHANNEL = "channel"


class BotStanding(StrEnum):
    """What the bot is in a chat."""

    MEMBER = "member"
    STRANGER = "stranger"  # the person never pressed start
    BLOCKED = "blocked"
    KICKED = "kicked"
    GONE = "gone"  # the person deleted the account


@dataclass(slots=True, kw_only=True, eq=False)
class User:
    user_id: int
    first_name: str
    username: str
    is_bot: bool = False
    language_code: str = "en"

    def as_json(self) -> JSON:
        found: JSON = {
            "id": self.user_id,
            "is_bot": self.is_bot,
            "first_name": self.first_name,
        }
        if self.username:
            found["username"] = self.username
        if not self.is_bot:
            found["language_code"] = self.language_code
        return found


@dataclass(slots=True, kw_only=True, eq=False)
class Topic:
    topic_id: int
    name: str
    is_closed: bool = False
    is_deleted: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class Chat:
    chat_id: int
    kind: ChatKind
    title: str
    user: User | None = None
    is_forum: bool = False
    can_make_topics: bool = True
    """Whether the bot may; in groups an administrator's right or everyone's."""
    standing: BotStanding = BotStanding.MEMBER
    migrated_to: int | None = None
    topics: dict[int, Topic] = field(default_factory=dict)
    messages: dict[int, "Message"] = field(default_factory=dict)
    drafts: dict[int, "Draft"] = field(default_factory=dict)
    ids: Iterator[int]

    def as_json(self) -> JSON:
        found: JSON = {"id": self.chat_id, "type": str(self.kind)}
        if self.user is None:
            found["title"] = self.title
        else:
            found["first_name"] = self.user.first_name
            if self.user.username:
                found["username"] = self.user.username
        if self.is_forum:
            found["is_forum"] = True
        if self.kind is ChatKind.GROUP:
            found["all_members_are_administrators"] = False
        return found


@dataclass(slots=True, kw_only=True, eq=False)
class Draft:
    """What a person sees being written; it is gone after thirty seconds."""

    text: str
    topic_id: int | None
    at: float


@dataclass(slots=True, kw_only=True, eq=False)
class Message:
    chat: Chat
    message_id: int
    sender: User | None
    date: int
    content: JSON
    topic_id: int | None = None
    reply_to: "Message | None" = None
    reply_markup: JSON | None = None
    edit_date: int | None = None
    is_service: bool = False
    is_deleted: bool = False
    reaction: list[JSON] = field(default_factory=list)

    @property
    def text(self) -> str:
        return str(self.content.get("text") or self.content.get("caption") or "")

    @property
    def is_by_bot(self) -> bool:
        return self.sender is not None and self.sender.is_bot

    @property
    def labels(self) -> list[str]:
        """What is written on its buttons, from the first to the last."""
        rows = (self.reply_markup or {}).get("inline_keyboard", [])
        return [str(button["text"]) for row in rows for button in row]

    def as_json(self, *, with_reply: bool = True) -> JSON:
        found: JSON = {
            "message_id": self.message_id,
            "chat": self.chat.as_json(),
            "date": self.date,
        }
        if self.sender is not None and self.chat.kind is not ChatKind.CHANNEL:
            found["from"] = self.sender.as_json()
        else:
            found["sender_chat"] = self.chat.as_json()
        if self.topic_id is not None:
            found["message_thread_id"] = self.topic_id
            found["is_topic_message"] = True
        if with_reply and (answered := self.reply_to or self._root()):
            found["reply_to_message"] = answered.as_json(with_reply=False)
        if self.edit_date is not None:
            found["edit_date"] = self.edit_date
        found.update(self.content)
        if self.reply_markup is not None:
            found["reply_markup"] = self.reply_markup
        return found

    def _root(self) -> "Message | None":
        """In a forum a message that answers no other answers the one that made its topic."""
        if self.topic_id is None or self.topic_id == self.message_id:
            return None
        if self.chat.kind is not ChatKind.SUPERGROUP:
            return None
        return self.chat.messages.get(self.topic_id)


class State:
    """Everything that exists, by id."""

    def __init__(self, bot: User) -> None:
        self.bot = bot
        self.users: dict[int, User] = {bot.user_id: bot}
        self.chats: dict[int, Chat] = {}
        self._user_ids = itertools.count(1_000_001)
        self._group_ids = itertools.count(4_000_001)
        self._supergroup_ids = itertools.count(2_000_000_001)
        self._account_message_ids = itertools.count(1)

    def add_user(self, first_name: str, username: str, language_code: str) -> User:
        user = User(
            user_id=next(self._user_ids),
            first_name=first_name,
            username=username,
            language_code=language_code,
        )
        self.users[user.user_id] = user
        return user

    def add_chat(self, kind: ChatKind, title: str = "", user: User | None = None) -> Chat:
        if user is not None:
            chat_id = user.user_id
        elif kind is ChatKind.GROUP:
            chat_id = -next(self._group_ids)
        else:
            chat_id = SUPERGROUP_BASE - next(self._supergroup_ids)
        # Supergroups and channels count their own messages; the rest share one counter.
        is_alone = kind in (ChatKind.SUPERGROUP, ChatKind.CHANNEL)
        ids = itertools.count(1) if is_alone else self._account_message_ids
        chat = Chat(chat_id=chat_id, kind=kind, title=title, user=user, ids=ids)
        self.chats[chat_id] = chat
        return chat

    def add_message(self, chat: Chat, sender: User | None, date: int, content: JSON) -> Message:
        message = Message(
            chat=chat, message_id=next(chat.ids), sender=sender, date=date, content=content
        )
        chat.messages[message.message_id] = message
        return message

    def messages(self) -> Iterator[Message]:
        """Every message of every chat that no one deleted."""
        for chat in list(self.chats.values()):
            for message in list(chat.messages.values()):
                if not message.is_deleted:
                    yield message
