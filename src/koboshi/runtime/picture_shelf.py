"""Received pictures as the model is shown them: small copies below the home, one for each place in
a message. A step names the copy and its hash; the bytes are in no row."""

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from anyio import to_thread

from koboshi.domain.media import shelved
from koboshi.domain.pictures import picture_type
from koboshi.domain.transcript import HeardPicture, Note, ShownPicture
from koboshi.ports.model import Request

SHOWN_MAX = 8
"""The newest pictures of a conversation; older ones are words."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureShelf:
    folder: Path

    async def put(self, name: str, content: bytes) -> str:
        """Keep a picture, durably. Returns its hash. Raises OSError."""
        await to_thread.run_sync(self._write, name, content)
        return hashlib.sha256(content).hexdigest()

    async def shown(self, request: Request) -> Request:
        """The request with the pictures that its notes speak of."""
        if not any(
            isinstance(step.body, Note) and shelved(step.body.cause) for step in request.steps
        ):
            return request
        return await to_thread.run_sync(self._with_pictures, request)

    def _with_pictures(self, request: Request) -> Request:
        steps, room = list(request.steps), SHOWN_MAX
        for place in reversed(range(len(steps))):
            body = steps[place].body
            found = shelved(body.cause) if isinstance(body, Note) else None
            picture = None if found is None or room == 0 else self._read(*found)
            if picture is not None and isinstance(body, Note):
                room -= 1
                heard = HeardPicture(cause=body.cause, text=body.text, picture=picture)
                steps[place] = replace(steps[place], body=heard)
        return replace(request, steps=tuple(steps))

    def _read(self, name: str, digest: str) -> ShownPicture | None:
        """The picture; None if it is gone, or is another one by now."""
        try:
            content = (self.folder / name).read_bytes()
        except OSError:
            return None
        media_type = picture_type(content[:16])
        if media_type is None or hashlib.sha256(content).hexdigest() != digest:
            return None
        return ShownPicture(media_type=media_type, content=content)

    def _write(self, name: str, content: bytes) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        part = self.folder / f".{name}.part"
        descriptor = os.open(part, _NEW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self.folder / name)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
