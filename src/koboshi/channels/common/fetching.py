"""Files that people send: fetched whole or not at all, without following links."""

from collections.abc import AsyncIterable
from pathlib import Path

from anyio import to_thread

from koboshi.channels.common.received import receiving
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment, size_words


def check_size(size: int, bytes_max: int) -> None:
    """Raises FileNotHad for a file that is too large."""
    if size > bytes_max:
        words = f"it has {size_words(size)}, and at most {size_words(bytes_max)} can be fetched"
        raise FileNotHad(words)


async def keep_pieces(
    pieces: AsyncIterable[bytes], attachment: Attachment, path: Path, bytes_max: int
) -> None:
    """Write what a platform sends to `path`, the place of the attachment. Raises FileNotHad if it
    is too large or something stands in the way; then nothing is left of it."""
    root = path.parents[len(Path(attachment.path).parts) - 1]
    size = 0
    with receiving(root, attachment.path) as received:
        async for piece in pieces:
            size += len(piece)
            check_size(size, bytes_max)
            await to_thread.run_sync(received.file.write, piece)
        await to_thread.run_sync(received.keep)
