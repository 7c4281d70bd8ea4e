"""Files that the agent sent: each has an address of its own, as long as its delivery is there."""

import os
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from anyio import to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from koboshi.channels.web.codec import Unacceptable
from koboshi.domain.files import SENT, OutFile, safe_name
from koboshi.domain.pictures import HEAD_BYTES, picture_type

PIECE_BYTES = 1 << 18
FALLBACK = "file"
# Whatever it is, a browser that shows it after all runs nothing of it.
CAREFUL = "default-src 'none'; frame-ancestors 'none'; sandbox"


def opened(home: Path, file: OutFile) -> int:
    """A descriptor of our copy. Raises Unacceptable if there is none: only a plain file, right in
    the folder of such copies, is one."""
    gone = Unacceptable(410, "gone", "the file is not there any more")
    place = PurePosixPath(file.path)
    is_plain = place.parts == (SENT, place.name) and "\0" not in file.path
    if not is_plain or str(place) != file.path:
        raise gone
    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(home / SENT / place.name, flags)
    except OSError:
        raise gone from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise gone
    return descriptor


class FileAnswer(Response):
    """A file, piece by piece: to be saved, unless its content is that of a picture which browsers
    show. The descriptor is closed whatever becomes of it."""

    def __init__(self, descriptor: int, name: str, *, has_body: bool) -> None:
        size = os.fstat(descriptor).st_size
        picture = picture_type(os.pread(descriptor, HEAD_BYTES, 0))
        headers = {
            "Content-Length": str(size),
            "Content-Disposition": disposition(name, is_shown=picture is not None),
            "Content-Security-Policy": CAREFUL,
        }
        super().__init__(headers=headers, media_type=picture or "application/octet-stream")
        self._descriptor = descriptor
        self._left = size if has_body else 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        try:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            while self._left:
                wanted = min(PIECE_BYTES, self._left)
                piece = await to_thread.run_sync(os.read, self._descriptor, wanted)
                if not piece:
                    raise EOFError("a copy of a file was cut while it was sent")
                self._left -= len(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            with suppress(OSError):
                os.close(self._descriptor)


def disposition(name: str, *, is_shown: bool = False) -> str:
    """The header that says: save it under this name. Nothing in the name ends or bends it."""
    how = "inline" if is_shown else "attachment"
    plain = safe_name(name, FALLBACK)
    ascii_name = safe_name(plain.encode("ascii", "replace").decode(), FALLBACK)
    return f"{how}; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(plain, safe='')}"
