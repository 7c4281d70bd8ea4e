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


class Chat(Struct, frozen=True):
    id: int
    type: str = "private"
    title: str = ""


class Entity(Struct, frozen=True):
    type: str
    offset: int
    length: int
    user: User | None = None


class File(Struct, frozen=True):
    """A file of any kind; pictures come in several sizes, and have no name."""

    file_id: str
    file_size: int = 0
    file_name: str = ""
    mime_type: str = ""
    emoji: str = ""


class Origin(Struct, frozen=True):
    type: str = ""
    sender_user: User | None = None
    sender_user_name: str = ""
    sender_chat: Chat | None = None
    chat: Chat | None = None


class Option(Struct, frozen=True):
    text: str = ""


class Poll(Struct, frozen=True):
    question: str = ""
    options: tuple[Option, ...] = ()


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


class Message(Struct, frozen=True):
    message_id: int
    chat: Chat
    date: int = 0
    from_: User | None = field(default=None, name="from")
    sender_chat: Chat | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    reply_to_message: "Message | None" = None
    quote: Quote | None = None
    forward_origin: Origin | None = None
    media_group_id: str = ""
    text: str = ""
    entities: tuple[Entity, ...] = ()
    caption: str = ""
    caption_entities: tuple[Entity, ...] = ()
    photo: tuple[File, ...] = ()
    document: File | None = None
    voice: File | None = None
    audio: File | None = None
    video: File | None = None
    video_note: File | None = None
    animation: File | None = None
    sticker: File | None = None
    poll: Poll | None = None
    location: Location | None = None
    contact: Contact | None = None
    dice: Dice | None = None
    migrate_to_chat_id: int | None = None
    migrate_from_chat_id: int | None = None

    @property
    def words(self) -> str:
        return self.text or self.caption

    def saying(self, words: str) -> "Message":
        """The same with other words."""
        return replace(self, text=words) if self.text else replace(self, caption=words)

    @property
    def marks(self) -> tuple[Entity, ...]:
        return self.entities or self.caption_entities


class Callback(Struct, frozen=True):
    """A button was pressed. A message that is too old comes with its place alone."""

    id: str
    from_: User = field(name="from")
    message: Message | None = None
    pressed: str = field(default="", name="data")


class Update(Struct, frozen=True):
    update_id: int
    message: Message | None = None
    edited_message: Message | None = None
    callback_query: Callback | None = None


class Parameters(Struct, frozen=True):
    retry_after: float | None = None
    migrate_to_chat_id: int | None = None


class Answer(Struct, frozen=True):
    """What every method returns."""

    ok: bool = False
    result: Any = None
    error_code: int = 0
    description: str = ""
    parameters: Parameters | None = None
