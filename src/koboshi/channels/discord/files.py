"""Files that people send: fetched whole, or not at all."""

from pathlib import Path
from urllib.parse import urlsplit

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.common.fetching import check_size, keep_pieces
from koboshi.channels.discord.client import DiscordApi
from koboshi.channels.discord.types import ChannelMessage, DiscordFile
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment

CONTENT_HOSTS = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
"""Where the platform keeps files. An address elsewhere is not visited."""


async def fetch(api: DiscordApi, attachment: Attachment, path: Path, bytes_max: int) -> None:
    """Bring a file of the platform to `path`. Raises FileNotHad if it never will come, and
    NotReached or NoAnswer if it may yet."""
    check_size(attachment.size, bytes_max)
    file = await _file_of(api, attachment)
    check_size(file.size, bytes_max)
    if not _is_theirs(file.url, api.base):
        raise FileNotHad("the platform keeps it where we do not look")
    async with api.download(file.url) as pieces:
        await keep_pieces(pieces, attachment, path, bytes_max)


async def _file_of(api: DiscordApi, attachment: Attachment) -> DiscordFile:
    """The file with an address that is good now: addresses expire."""
    channel_id, message_id, file_id = attachment.reference.split("/")
    path = f"/channels/{channel_id}/messages/{message_id}"
    answer = await api.call("GET", path, kind="getMessage", place=channel_id)
    if answer.status in (403, 404):
        raise FileNotHad(answer.refusal.message or "the platform does not have it any more")
    if not answer.is_good:
        raise NoAnswer(answer.refusal.message)
    message = answer.read(ChannelMessage)
    held = [*message.attachments]
    for each in message.message_snapshots:
        held += each.message.attachments
    for file in held:
        if file.id == file_id:
            return file
    raise FileNotHad("it was taken out of its message")


def _is_theirs(address: str, base: str) -> bool:
    """A file is at the platform's own hosts, or beside a server of tests."""
    parts, ours = urlsplit(address), urlsplit(base)
    if (parts.scheme, parts.netloc) == (ours.scheme, ours.netloc):
        return True
    return parts.scheme == "https" and parts.hostname in CONTENT_HOSTS
