"""Files that people send: fetched whole, or not at all."""

from pathlib import Path

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.common.fetching import check_size, keep_pieces
from koboshi.channels.telegram.client import BotApi
from koboshi.channels.telegram.types import BotAnswer
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment


async def fetch(api: BotApi, attachment: Attachment, path: Path, bytes_max: int) -> None:
    """Bring a file of the platform to `path`. Raises FileNotHad if it never will come, and
    NotReached or NoAnswer if it may yet."""
    check_size(attachment.size, bytes_max)
    answer = await api.call("getFile", {"file_id": attachment.reference})
    async with api.download(_place_in(answer)) as pieces:
        await keep_pieces(pieces, attachment, path, bytes_max)


def _place_in(answer: BotAnswer) -> str:
    if not answer.ok:
        if answer.error_code in (400, 404):
            raise FileNotHad(answer.description or "the platform does not have it any more")
        raise NoAnswer(answer.description)
    place = answer.result.get("file_path") if isinstance(answer.result, dict) else None
    if not isinstance(place, str) or ".." in place.split("/"):
        raise FileNotHad("the platform does not say where it is")
    return place
