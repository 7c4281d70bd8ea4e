"""Where a file that a person sent is written: opened folder by folder without following links.

The agent may write in the working folder. A link that it plants on the way of a download would have
us write somewhere else, with our own rights. So each folder below the root is opened as what it is,
and the file is made anew under a name of its own before it takes its place.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from koboshi.domain.errors import FileNotHad

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY})


@dataclass(slots=True, kw_only=True)
class ReceivedFile:
    """One that is being written. It gets its name when it is `kept`, and else leaves nothing."""

    folder: int
    name: str
    file: BinaryIO
    is_kept: bool = False

    @property
    def part(self) -> str:
        return part_of(self.name)

    def keep(self) -> None:
        """It is whole. A file that is there is not fetched again, so it has to be whole when the
        power is back."""
        self.file.flush()
        os.fsync(self.file.fileno())
        os.replace(self.part, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        os.fsync(self.folder)
        self.is_kept = True


@contextmanager
def receiving(root: Path, place: str) -> Iterator[ReceivedFile]:
    """A file at `place` below `root`, to be written. Raises FileNotHad where something stands in
    the way, and OSError."""
    *folders, name = PurePosixPath(place).parts
    if not name or {"..", "/"} & {*folders, name}:
        raise FileNotHad(f"{place} is not below the working folder")
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _entered(root, folders) as folder:
            with suppress(FileNotFoundError):
                os.unlink(part_of(name), dir_fd=folder)
            with os.fdopen(os.open(part_of(name), _NEW, 0o600, dir_fd=folder), "wb") as file:
                received = ReceivedFile(folder=folder, name=name, file=file)
                try:
                    yield received
                finally:
                    if not received.is_kept:
                        with suppress(OSError):
                            os.unlink(received.part, dir_fd=folder)
    except OSError as error:
        if error.errno in _IN_THE_WAY:
            words = f"a link or another thing stands in the way of {place}; remove it"
            raise FileNotHad(words) from error
        raise


def part_of(name: str) -> str:
    """What a file is called until it is whole."""
    return f".{name}.part"


@contextmanager
def _entered(root: Path, folders: list[str]) -> Iterator[int]:
    """The folder below the root, open; what is missing of it is made."""
    descriptor = os.open(root, _FOLDER)
    try:
        for name in folders:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=descriptor)
            deeper = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)
