"""What a message says, in words and files: whatever people send, the agent can read. Pure."""

import re
from collections.abc import Iterator

from koboshi.channels.common.reading import media_type
from koboshi.channels.discord.types import ChannelMessage, DiscordFile
from koboshi.domain.files import RECEIVED, Attachment, safe_name
from koboshi.domain.ids import ChannelName
from koboshi.domain.phrases import excerpt

QUOTE_CHARS_MAX = 300
PASSED_ON = 1
"""The type of a reference to a message that was passed on."""
_MENTION = re.compile(r"<@!?([0-9]{1,20})>")


def said_in(message: ChannelMessage, me: str) -> str:
    """The words of a message, with what it answers or passes on; empty if it says nothing."""
    own = _without_us(_named(message), me) or _described(message)
    passed = "\n".join(each.message.content for each in message.message_snapshots).strip()
    if is_passed_on(message):
        own = "\n".join(filter(None, ["[forwarded]", passed, own]))
    if not own and not any(_files(message)):
        return ""
    if own.startswith("/"):
        return own
    return "\n".join(filter(None, [_answered(message), own]))


def is_passed_on(message: ChannelMessage) -> bool:
    reference = message.message_reference
    return reference is not None and reference.kind == PASSED_ON


def attachments_of(message: ChannelMessage, channel: ChannelName) -> tuple[Attachment, ...]:
    """The files of a message, each with a place of its own. The address of a file is good for a
    day, so a file is named by its message, which is asked for a new address."""
    folder = f"{RECEIVED}/{safe_name(channel.replace(':', '-'), 'discord')}"
    return tuple(
        Attachment(
            reference=f"{message.channel_id}/{message.id}/{file.id}",
            path=f"{folder}/{message.id}-{number}-{safe_name(file.filename, 'file')}",
            kind=media_type(file.content_type or "") or "file",
            size=max(file.size, 0),
        )
        for number, file in enumerate(_files(message))
    )


def lacks_content(message: ChannelMessage) -> bool:
    """Whether nothing at all is in it, as in every message that a bot may not read."""
    held = (
        message.content,
        message.attachments,
        message.sticker_items,
        message.message_snapshots,
        message.embeds,
        message.components,
        message.poll,
    )
    return not any(held)


def _files(message: ChannelMessage) -> Iterator[DiscordFile]:
    yield from message.attachments
    for each in message.message_snapshots:
        yield from each.message.attachments


def _named(message: ChannelMessage) -> str:
    """The words with the names of people in place of their numbers."""
    names = {person.id: person.name for person in message.mentions}

    def name(found: re.Match[str]) -> str:
        return f"@{names[found[1]]}" if found[1] in names and names[found[1]] else found[0]

    return _MENTION.sub(name, message.content)


def _without_us(words: str, me: str) -> str:
    """The words without our name at their beginning or end, which is how we are called."""
    name = re.escape(me)
    begun = re.sub(rf"^@{name}\b[\s,:]*", "", words.strip())
    ended = re.sub(rf"\s+@{name}$", "", begun).strip()
    return ended if ended else words.strip()


def _described(message: ChannelMessage) -> str:
    if message.sticker_items:
        return f"[sticker {', '.join(each.name for each in message.sticker_items)}]"
    if message.poll is not None:
        options = " / ".join(each.poll_media.text or "" for each in message.poll.answers)
        return f"[poll {message.poll.question.text or ''}: {options}]"
    return ""


def _answered(message: ChannelMessage) -> str:
    """What the words are about, where they answer a message of another person."""
    answered = message.referenced_message
    if answered is None or answered.author is None or answered.author.is_bot:
        return ""  # what a bot said to them is known, and what they say may be a plain yes
    about = _named(answered).strip() or _described(answered)
    return f"[in answer to «{excerpt(about, QUOTE_CHARS_MAX)}»]" if about else ""
