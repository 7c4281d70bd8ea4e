"""What a message says, in words and files: whatever people send, the agent can read. Pure."""

from collections.abc import Iterator

from koboshi.channels.common.reading import media_type
from koboshi.channels.telegram.types import MessageOrigin, TelegramFile, TelegramMessage
from koboshi.domain.files import RECEIVED, Attachment, safe_name
from koboshi.domain.ids import ChannelName
from koboshi.domain.phrases import excerpt

QUOTE_CHARS_MAX = 300


def said_in(message: TelegramMessage) -> str:
    """The words of a message, with what it answers or passes on; empty if it says nothing."""
    own = message.words.strip() or _described(message)
    if not own and not any(_files(message)):
        return ""
    if message.words.startswith("/") and message.forward_origin is None:
        return own
    return "\n".join(filter(None, [_passed_on(message.forward_origin), _answered(message), own]))


def attachments_of(message: TelegramMessage, channel: ChannelName) -> tuple[Attachment, ...]:
    """The files of a message, each with a place of its own."""
    folder = f"{RECEIVED}/{safe_name(channel.replace(':', '-'), 'telegram')}"
    place = f"{folder}/{message.chat.id}-{message.message_id}"
    return tuple(
        Attachment(
            reference=file.file_id,
            path=f"{place}-{safe_name(file.file_name, name)}",
            kind=media_type(file.mime_type) or kind,
            size=max(file.file_size, 0),
        )
        for file, name, kind in _files(message)
    )


def _files(message: TelegramMessage) -> Iterator[tuple[TelegramFile, str, str]]:
    """Each file, what to call it where it has no name, and what it is."""
    if message.photo:
        largest = max(message.photo, key=lambda size: size.file_size)
        yield largest, "photo.jpg", "image/jpeg"
    if message.animation is not None:
        yield message.animation, "animation.mp4", "video/mp4"
    elif message.document is not None:
        yield message.document, "document", "document"
    kinds = (
        (message.voice, "voice.ogg", "audio/ogg"),
        (message.audio, "audio.mp3", "audio/mpeg"),
        (message.video, "video.mp4", "video/mp4"),
        (message.video_note, "video-note.mp4", "video/mp4"),
    )
    for file, name, kind in kinds:
        if file is not None:
            yield file, name, kind


def _described(message: TelegramMessage) -> str:
    if message.sticker is not None:
        return f"[sticker {message.sticker.emoji}]".replace(" ]", "]")
    if message.location is not None:
        return f"[location {message.location.latitude}, {message.location.longitude}]"
    if message.contact is not None:
        who = f"{message.contact.first_name} {message.contact.last_name}".strip()
        return f"[contact {who} {message.contact.phone_number}]"
    if message.poll is not None:
        options = " / ".join(option.text for option in message.poll.options)
        return f"[poll {message.poll.question}: {options}]"
    if message.dice is not None:
        return f"[dice {message.dice.emoji} {message.dice.value}]"
    return ""


def _passed_on(origin: MessageOrigin | None) -> str:
    if origin is None:
        return ""
    chat = origin.chat or origin.sender_chat
    who = origin.sender_user_name
    if origin.sender_user is not None:
        who = origin.sender_user.name
    elif chat is not None:
        who = chat.title
    return f"[forwarded from {excerpt(who)}]" if who else "[forwarded]"


def _answered(message: TelegramMessage) -> str:
    """What the words are about, where they answer another message than the beginning of a topic."""
    answered = message.reply_to_message
    if answered is None or answered.message_id == message.message_thread_id:
        return ""
    if answered.from_ is not None and answered.from_.is_bot and message.quote is None:
        return ""  # what was said to them is known, and what they say may be a plain yes
    about = message.quote.text if message.quote is not None else answered.words
    about = about or _described(answered)
    return f"[in answer to «{excerpt(about, QUOTE_CHARS_MAX)}»]" if about.strip() else ""
