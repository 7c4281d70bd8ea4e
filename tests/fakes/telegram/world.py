"""The platform's world, and what people do in it. Everything the bot is told of starts here.

Chats, people and messages may be named by the object or by their ids, so that another process can
do the same over HTTP.
"""

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.fakes.telegram import entities as texts
from tests.fakes.telegram.files import Files, shown
from tests.fakes.telegram.state import (
    JSON,
    TOPIC_COLOR,
    BotStanding,
    Chat,
    ChatKind,
    Message,
    State,
    Topic,
    User,
)
from tests.fakes.telegram.updates import PRESS_KEPT_S, Updates
from tests.harness import polling

ChatRef = Chat | int
UserRef = User | int
TopicRef = Topic | int | None
MessageRef = Message | Sequence[int]
Found = TypeVar("Found")

BOT_ID = 123456789


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """A press of a button that waits for its answer."""

    query_id: str
    message: Message
    user: User
    at: float


@dataclass(slots=True, kw_only=True)
class Account:
    """What getMe says of the bot, and what it has set for itself."""

    can_join_groups: bool = True
    can_read_all_group_messages: bool = True
    has_topics_enabled: bool = False
    commands: dict[tuple[str, str], list[JSON]] = field(default_factory=dict)


class World(State):
    """All chats of one bot, and what people do there. May be used from any thread."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        bot_name: str = "koboshi_bot",
        bot_id: int = BOT_ID,
        has_topics_enabled: bool = False,
    ) -> None:
        super().__init__(User(user_id=bot_id, first_name="Koboshi", username=bot_name, is_bot=True))
        self.clock = clock
        self.lock = threading.RLock()
        self.account = Account(has_topics_enabled=has_topics_enabled)
        self.files = Files()
        self.updates = Updates(self._now)
        self.presses: dict[str, Press] = {}
        self.answers: dict[str, JSON] = {}
        self.actions: list[tuple[int, int | None, str]] = []
        self.on_update: Callable[[], None] = lambda: None
        self._query_ids = itertools.count(5_000_000_001)

    def _now(self) -> float:
        return self.clock()

    @property
    def now(self) -> int:
        return int(self.clock())

    # Places

    def user(self, first_name: str = "Ada", username: str = "", language: str = "en") -> User:
        with self.lock:
            return self.add_user(first_name, username, language)

    def private_chat(self, user: UserRef | None = None, *, started: bool = True) -> Chat:
        with self.lock:
            person = self.user() if user is None else self._user(user)
            chat = self.chats.get(person.user_id)
            if chat is None:
                chat = self.add_chat(ChatKind.PRIVATE, user=person)
            chat.standing = BotStanding.MEMBER if started else BotStanding.STRANGER
            return chat

    def group(self, title: str = "A group") -> Chat:
        with self.lock:
            return self.add_chat(ChatKind.GROUP, title)

    def supergroup(self, title: str = "A supergroup", *, forum: bool = False) -> Chat:
        with self.lock:
            chat = self.add_chat(ChatKind.SUPERGROUP, title)
            chat.is_forum = forum
            self._found(chat, "supergroup_chat_created")
            return chat

    def channel(self, title: str = "A channel") -> Chat:
        with self.lock:
            chat = self.add_chat(ChatKind.CHANNEL, title)
            self._found(chat, "channel_chat_created")
            return chat

    def topic(self, chat: ChatRef, name: str, user: UserRef | None = None) -> Topic:
        """A new topic; its id is the id of the message that tells of it."""
        with self.lock:
            place = self._chat(chat)
            made = {"name": name, "icon_color": TOPIC_COLOR}
            creator = self.bot if user is None else self._user(user)
            message = self.add_message(place, creator, self.now, {"forum_topic_created": made})
            message.is_service = True
            message.topic_id = message.message_id
            topic = Topic(topic_id=message.message_id, name=name)
            place.topics[topic.topic_id] = topic
            self.tell(message)
            return topic

    def close_topic(self, chat: ChatRef, topic: Topic | int, *, closed: bool = True) -> None:
        with self.lock:
            place = self._chat(chat)
            found = self._topic(place, topic)
            found.is_closed = closed
            told = "forum_topic_closed" if closed else "forum_topic_reopened"
            self.service(place, {told: {}}, topic=found)

    def delete_topic(self, chat: ChatRef, topic: Topic | int) -> None:
        """The topic and all that was said in it are gone; no notice is sent."""
        with self.lock:
            place = self._chat(chat)
            found = self._topic(place, topic)
            found.is_deleted = True
            for message in place.messages.values():
                if message.topic_id == found.topic_id:
                    message.is_deleted = True

    # What people do

    def say(
        self,
        chat: ChatRef,
        user: UserRef | None,
        text: str = "",
        *,
        topic: TopicRef = None,
        reply_to: MessageRef | int | None = None,
        entities: list[JSON] | None = None,
        media_group_id: str = "",
        forward_origin: JSON | None = None,
        date: int | None = None,
        extra: JSON | None = None,
        **attached: bytes | str,
    ) -> Message:
        """Send a message as a person (or as the channel, without one). `photo`, `document`,
        `voice` and `sticker` are contents of a file to attach; the text becomes its caption."""
        with self.lock:
            place = self._chat(chat)
            content = self._attached(attached)
            field_name, marks = ("caption", "caption_entities") if content else ("text", "entities")
            if text:
                content[field_name] = text
                if found := texts.notice(text) if entities is None else entities:
                    content[marks] = found
            if media_group_id:
                content["media_group_id"] = media_group_id
            if forward_origin is not None:
                content["forward_origin"] = forward_origin
            content.update(extra or {})
            if place.kind is ChatKind.PRIVATE:
                place.standing = BotStanding.MEMBER  # who writes to a bot has unblocked it
            sender = None if user is None else self._user(user)
            message = self.add_message(place, sender, self.now if date is None else date, content)
            if topic is not None:
                message.topic_id = self._topic(place, topic).topic_id
            if reply_to is not None:
                message.reply_to = self._replied(place, reply_to)
            self.tell(message)
            return message

    def edit(self, message: MessageRef, text: str) -> Message:
        with self.lock:
            found = self._message(message)
            name = "text" if "text" in found.content else "caption"
            marks = "entities" if name == "text" else "caption_entities"
            found.content = {**found.content, name: text, marks: texts.notice(text)}
            found.edit_date = self.now
            self.tell(found, is_edited=True)
            return found

    def delete(self, message: MessageRef) -> None:
        """A person takes a message away; the bot is not told."""
        with self.lock:
            self._message(message).is_deleted = True

    def press(self, message: MessageRef, button: str, user: UserRef | None = None) -> str:
        """Press a button by what it carries or what is written on it; the id of the query."""
        with self.lock:
            found = self._message(message)
            pressed = self._button(found, button)
            person = self._user(user) if user is not None else found.chat.user
            assert person is not None, "say who presses a button in a group"
            query_id = str(next(self._query_ids))
            self.presses[query_id] = Press(
                query_id=query_id, message=found, user=person, at=self.clock()
            )
            query = {
                "id": query_id,
                "from": person.as_json(),
                "message": found.as_json(),
                "chat_instance": str(abs(found.chat.chat_id) * 7919),
                "data": pressed["callback_data"],
            }
            self.updates.add("callback_query", query, since=self.clock(), kept_s=PRESS_KEPT_S)
            self.on_update()
            return query_id

    def raw(self, update: JSON | bytes | str) -> int:
        """Put anything into the queue, well-formed or not; the number it has there."""
        with self.lock:
            content = update.encode() if isinstance(update, str) else update
            update_id = self.updates.add_raw(content)
            self.on_update()
            return update_id

    def redeliver(self, update_id: int, *, renumbered: bool = False) -> int:
        """Tell an update again, acknowledged or not."""
        with self.lock:
            told = self.updates.repeat(update_id, renumbered=renumbered)
            self.on_update()
            return told

    def reorder(self) -> None:
        with self.lock:
            self.updates.reverse_next()

    def renumber(self, update_id: int) -> None:
        """The next update has this number, as after a week without any."""
        with self.lock:
            self.updates.renumber(update_id)

    def migrate(self, group: ChatRef) -> Chat:
        """A group becomes a supergroup with another id; both are told."""
        with self.lock:
            old = self._chat(group)
            new = self.add_chat(ChatKind.SUPERGROUP, old.title)
            old.migrated_to = new.chat_id
            self.service(old, {"migrate_to_chat_id": new.chat_id})
            self.service(new, {"migrate_from_chat_id": old.chat_id})
            return new

    def block(self, user: UserRef) -> None:
        self._stand(self._user(user).user_id, BotStanding.BLOCKED, "member", "kicked")

    def unblock(self, user: UserRef) -> None:
        self._stand(self._user(user).user_id, BotStanding.MEMBER, "kicked", "member")

    def deactivate(self, user: UserRef) -> None:
        with self.lock:
            self._chat(self._user(user).user_id).standing = BotStanding.GONE

    def kick(self, chat: ChatRef) -> None:
        self._stand(self._chat(chat).chat_id, BotStanding.KICKED, "member", "kicked")

    # What people see

    def messages_seen(self, chat: ChatRef, topic: TopicRef = None) -> list[Message]:
        """What a person sees there, in order: the newest text of each, without the deleted."""
        with self.lock:
            place = self._chat(chat)
            wanted = None if topic is None else self._topic(place, topic).topic_id
            return [
                message
                for message in place.messages.values()
                if not message.is_deleted and not message.is_service
                if wanted is None or message.topic_id == wanted
            ]

    def texts_seen(self, chat: ChatRef, topic: TopicRef = None) -> list[str]:
        return [message.text for message in self.messages_seen(chat, topic)]

    def copies(self, text: str) -> list[Message]:
        """Every message of the bot, anywhere, that holds `text` now."""
        with self.lock:
            return [each for each in self.messages() if each.is_by_bot and text in each.text]

    def drafts_seen(self, chat: ChatRef) -> list[str]:
        """What a person sees being written; a draft is shown for thirty seconds."""
        with self.lock:
            since = self.clock() - 30
            return [each.text for each in self._chat(chat).drafts.values() if each.at > since]

    async def until(
        self, look: Callable[[], Found | None], what: str = "the platform sees it"
    ) -> Found:
        return await polling.until(look, what)

    # What both sides of the platform use

    def tell(self, message: Message, *, is_edited: bool = False) -> int | None:
        """Queue the update about a message. None if the bot does not hear of it."""
        if message.chat.standing is BotStanding.KICKED:
            return None
        kind = "channel_post" if message.chat.kind is ChatKind.CHANNEL else "message"
        since = message.edit_date or message.date
        update_id = self.updates.add(
            f"edited_{kind}" if is_edited else kind, message.as_json(), since=since
        )
        self.on_update()
        return update_id

    def service(self, chat: Chat, content: JSON, topic: Topic | None = None) -> Message:
        message = self.add_message(chat, self.bot, self.now, content)
        message.is_service = True
        message.topic_id = None if topic is None else topic.topic_id
        self.tell(message)
        return message

    def _found(self, chat: Chat, told: str) -> None:
        """The first message of a chat tells of its beginning; the bot was not there yet."""
        self.add_message(chat, self.bot, self.now, {told: True}).is_service = True

    def _stand(self, chat_id: int, standing: BotStanding, old: str, new: str) -> None:
        with self.lock:
            chat = self._chat(chat_id)
            chat.standing = standing
            bot = self.bot.as_json()
            until: JSON = {"until_date": 0}
            change = {
                "chat": chat.as_json(),
                "from": (chat.user or self.bot).as_json(),
                "date": self.now,
                "old_chat_member": {
                    "status": old,
                    "user": bot,
                    **(until if old == "kicked" else {}),
                },
                "new_chat_member": {
                    "status": new,
                    "user": bot,
                    **(until if new == "kicked" else {}),
                },
            }
            self.updates.add("my_chat_member", change, since=self.clock())
            self.on_update()

    def _attached(self, attached: dict[str, bytes | str]) -> JSON:
        content: JSON = {}
        for role, held in attached.items():
            held_bytes = held.encode() if isinstance(held, str) else held
            name = "notes.txt" if role == "document" else ""
            kind = "text/plain" if role == "document" else ""
            content.update(shown(role, self.files.add(role, held_bytes, name, kind)))
        return content

    def _button(self, message: Message, wanted: str) -> JSON:
        rows = (message.reply_markup or {}).get("inline_keyboard", [])
        for button in (each for row in rows for each in row):
            if wanted in (button.get("callback_data"), button["text"]):
                return dict(button)
        raise LookupError(f"no button {wanted!r} on message {message.message_id}: {rows}")

    def _replied(self, chat: Chat, reply_to: MessageRef | int) -> Message:
        return chat.messages[reply_to] if isinstance(reply_to, int) else self._message(reply_to)

    def _user(self, user: UserRef) -> User:
        return user if isinstance(user, User) else self.users[user]

    def _chat(self, chat: ChatRef) -> Chat:
        return chat if isinstance(chat, Chat) else self.chats[chat]

    def _topic(self, chat: Chat, topic: Topic | int) -> Topic:
        return topic if isinstance(topic, Topic) else chat.topics[topic]

    def _message(self, message: MessageRef) -> Message:
        if isinstance(message, Message):
            return message
        chat_id, message_id = message
        return self.chats[chat_id].messages[message_id]
