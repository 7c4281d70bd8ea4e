"""Files that people send along: stored whole before the message that names them is.

Theory of operation. A file comes first, in a request of its own: it is written below `new/`, made
durable, and gets a random name, which the client then names in its message. Before the message is
committed, its files move from `new/` to the folder itself, and that is made durable, too. So at
every moment a file that a stored message names is there and whole; a power cut changes nothing. A
file in `new/` belongs to no message. It goes after a day: its person thought better of it, or the
message was never sent.
"""

import os
import re
import secrets
import stat
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from koboshi.channels.common.received import receiving
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import UPLOADED, Attachment
from koboshi.ports.files import NO_SHELF, FileShelf

NEW = "new"
UNUSED_NS = 86_400 * 10**9
"""How long a file waits for its message."""
COPY_BYTES = 1 << 20
NAME = re.compile(r"[0-9a-f]{32}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class TooLarge(Exception):
    """More came than a file may have."""


class NoUpload(Exception):
    """There is no such file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploads:
    home: Path
    bytes_max: int
    shelf: FileShelf = NO_SHELF
    """Where other gateways find what came here."""

    @property
    def _folder(self) -> Path:
        return self.home / UPLOADED

    async def take(self, pieces: AsyncIterator[bytes]) -> str:
        """Store a file. Returns its name once it is durable. Raises TooLarge."""
        name, size = secrets.token_hex(16), 0
        await to_thread.run_sync(self._make_room)
        with receiving(self.home, f"{UPLOADED}/{NEW}/{name}") as received:
            async for piece in pieces:
                size += len(piece)
                if size > self.bytes_max:
                    raise TooLarge
                await to_thread.run_sync(received.file.write, piece)
            await to_thread.run_sync(received.keep)
        await self.shelf.keep(f"{UPLOADED}/{name}", self._folder / NEW / name)
        return name

    async def fetch(self, name: str) -> None:
        """Have a file here that came to another gateway."""
        if NAME.fullmatch(name) and not (self._folder / NEW / name).exists():
            await self.shelf.bring(f"{UPLOADED}/{name}")

    def _make_room(self) -> None:
        (self._folder / NEW).mkdir(mode=0o700, parents=True, exist_ok=True)

    async def keep(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Make these files those of a message. Returns their sizes. Raises NoUpload."""
        await to_thread.run_sync(self._make_room)
        for name in names:
            await self.fetch(name)
        return await to_thread.run_sync(self._keep, names)

    def _keep(self, names: tuple[str, ...]) -> tuple[int, ...]:
        sizes = []
        for name in names:
            place = self._folder / _checked(name)
            # A message that is sent again finds them where the first one has put them.
            with suppress(FileNotFoundError):
                (self._folder / NEW / name).replace(place)
            try:
                sizes.append(place.lstat().st_size)
            except FileNotFoundError:
                raise NoUpload(name) from None
        for folder in (self._folder, self._folder / NEW):
            descriptor = os.open(folder, _FOLDER)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        return tuple(sizes)

    def opened(self, name: str) -> int:
        """A descriptor of a file, with a message or not yet. Raises NoUpload."""
        for place in (self._folder / _checked(name), self._folder / NEW / name):
            try:
                descriptor = os.open(place, _PLAIN)
            except OSError:
                continue
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return descriptor
            os.close(descriptor)
        raise NoUpload(name)

    def bring(self, attachment: Attachment, path: Path) -> None:
        """Copy a file to where the agent finds it, whole or not at all. Raises FileNotHad."""
        try:
            source = self.opened(attachment.reference)
        except NoUpload:
            raise FileNotHad("the gateway does not have it any more") from None
        root = path.parents[len(Path(attachment.path).parts) - 1]
        with os.fdopen(source, "rb") as file, receiving(root, attachment.path) as received:
            while piece := file.read(COPY_BYTES):
                received.file.write(piece)
            received.keep()

    async def sweep(self, now_ns: int) -> int:
        """Remove files that no message took. Returns how many."""
        return await to_thread.run_sync(self._sweep, now_ns)

    def _sweep(self, now_ns: int) -> int:
        gone = 0
        for path in (self._folder / NEW).glob("*"):
            with suppress(FileNotFoundError):
                if path.lstat().st_mtime_ns < now_ns - UNUSED_NS:
                    path.unlink()
                    gone += 1
        return gone


def _checked(name: str) -> str:
    if NAME.fullmatch(name) is None:
        raise NoUpload(name)
    return name
