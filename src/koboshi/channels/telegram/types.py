"""What we read of Telegram's objects: the fields we use, everything else is passed over."""

from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace


class User(Struct, frozen=True):
    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip() or self.username


class TelegramChat(Struct, frozen=True):
    id: int
    type: str = "private"
    title: str = ""


class TelegramEntity(Struct, frozen=True):
    type: str
    offset: int
    length: int
    user: User | None = None


class TelegramFile(Struct, frozen=True):
    """A file of any kind; pictures come in several sizes, and have no name."""

    file_id: str
    file_size: int = 0
    file_name: str = ""
    mime_type: str = ""
    emoji: str = ""


class MessageOrigin(Struct, frozen=True):
    type: str = ""
    sender_user: User | None = None
    sender_user_name: str = ""
    sender_chat: TelegramChat | None = None
    chat: TelegramChat | None = None


class PollOption(Struct, frozen=True):
    text: str = ""


class Poll(Struct, frozen=True):
    question: str = ""
    options: tuple[PollOption, ...] = ()


class Location(Struct, frozen=True):
    latitude: float = 0.0
    longitude: float = 0.0


class Contact(Struct, frozen=True):
    phone_number: str = ""
    first_name: str = ""
    last_name: str = ""


class Dice(Struct, frozen=True):
    emoji: str = ""
    value: int = 0


class Quote(Struct, frozen=True):
    text: str = ""


class TopicMade(Struct, frozen=True):
    name: str = ""


class TelegramMessage(Struct, frozen=True):
    message_id: int
    chat: TelegramChat
    date: int = 0
    from_: User | None = field(default=None, name="from")
    sender_chat: TelegramChat | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    reply_to_message: "TelegramMessage | None" = None
    quote: Quote | None = None
    forward_origin: MessageOrigin | None = None
    media_group_id: str = ""
    text: str = ""
    entities: tuple[TelegramEntity, ...] = ()
    caption: str = ""
    caption_entities: tuple[TelegramEntity, ...] = ()
    photo: tuple[TelegramFile, ...] = ()
    document: TelegramFile | None = None
    voice: TelegramFile | None = None
    audio: TelegramFile | None = None
    video: TelegramFile | None = None
    video_note: TelegramFile | None = None
    animation: TelegramFile | None = None
    sticker: TelegramFile | None = None
    poll: Poll | None = None
    location: Location | None = None
    contact: Contact | None = None
    dice: Dice | None = None
    migrate_to_chat_id: int | None = None
    migrate_from_chat_id: int | None = None
    forum_topic_created: TopicMade | None = None

    @property
    def words(self) -> str:
        return self.text or self.caption

    def saying(self, words: str) -> "TelegramMessage":
        """The same with other words."""
        return replace(self, text=words) if self.text else replace(self, caption=words)

    @property
    def marks(self) -> tuple[TelegramEntity, ...]:
        return self.entities or self.caption_entities


class Callback(Struct, frozen=True):
    """A button was pressed. A message that is too old comes with its place alone."""

    id: str
    from_: User = field(name="from")
    message: TelegramMessage | None = None
    pressed: str = field(default="", name="data")


class Update(Struct, frozen=True):
    update_id: int
    message: TelegramMessage | None = None
    edited_message: TelegramMessage | None = None
    callback_query: Callback | None = None


class Parameters(Struct, frozen=True):
    retry_after: float | None = None
    migrate_to_chat_id: int | None = None


class BotAnswer(Struct, frozen=True):
    """What every method returns."""

    ok: bool = False
    result: Any = None
    error_code: int = 0
    description: str = ""
    parameters: Parameters | None = None
