"""Files that people send: fetched whole, or not at all."""

from pathlib import Path

from anyio import to_thread

from koboshi.channels.common.received import receiving
from koboshi.channels.telegram.client import BotApi, NoAnswer
from koboshi.channels.telegram.types import BotAnswer
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment, size_words


async def fetch(api: BotApi, attachment: Attachment, path: Path, bytes_max: int) -> None:
    """Bring a file of the platform to `path`. Raises FileNotHad if it never will come, and
    NotReached or NoAnswer if it may yet."""
    if attachment.size > bytes_max:
        raise FileNotHad(_too_large(attachment.size, bytes_max))
    answer = await api.call("getFile", {"file_id": attachment.reference})
    place = _place_in(answer)
    root = path.parents[len(Path(attachment.path).parts) - 1]
    size = 0
    async with api.download(place) as pieces:
        with receiving(root, attachment.path) as received:
            async for piece in pieces:
                size += len(piece)
                if size > bytes_max:
                    raise FileNotHad(_too_large(size, bytes_max))
                await to_thread.run_sync(received.file.write, piece)
            await to_thread.run_sync(received.keep)


def _place_in(answer: BotAnswer) -> str:
    if not answer.ok:
        if answer.error_code in (400, 404):
            raise FileNotHad(answer.description or "the platform does not have it any more")
        raise NoAnswer(answer.description)
    place = answer.result.get("file_path") if isinstance(answer.result, dict) else None
    if not isinstance(place, str) or ".." in place.split("/"):
        raise FileNotHad("the platform does not say where it is")
    return place


def _too_large(size: int, bytes_max: int) -> str:
    return f"it has {size_words(size)}, and at most {size_words(bytes_max)} can be fetched"
