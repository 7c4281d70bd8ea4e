"""Which files the tools may open, and the only way to open them. Standard library only: the program
that searches uses it as well.

A path is resolved first, and then opened folder by folder without following links. So a link that
is put in its way meanwhile leads nowhere, and each folder on the way is recognised by what it is
and not by how it is spelt.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from koboshi.tools.danger import KEY_FILES, KEY_FOLDERS

SYSTEM_FOLDERS = ("/dev", "/proc", "/sys")
"""What is in there is made up while it is read: some of it never ends, some tells of us."""

Identity: TypeAlias = tuple[int, int]
"""Device and inode: what a file is, however it is called."""

# Linux can hold a folder that may be entered and not be listed.
_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
# A pipe that nobody writes to must not keep us waiting, nor a link be followed.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class PathRefused(Exception):
    """It can not be done, or must not be; in words that name the path."""


class PathStanding(StrEnum):
    OURS = "ours"  # the gateway's own: never opened
    WORKDIR = "workdir"  # the agent's: may be changed
    OUTSIDE = "outside"  # may be looked at, as far as the system allows


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """An open folder, and the true path that led to it."""

    descriptor: int
    path: str
    standing: PathStanding


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlaces:
    """The working folder, and the home of the gateway, which is off limits wherever it is."""

    workdir: str
    home: str

    def resolve(self, path: str) -> str:
        """The true path that is meant, links followed. It need not exist."""
        return os.path.realpath(os.path.join(self.workdir, os.path.expanduser(path)))

    def named(self, real: str) -> str:
        """A true path as the tools show it: relative to the working folder if it is below."""
        root = os.path.realpath(self.workdir)
        if real == root:
            return "."
        return real.removeprefix(root.rstrip("/") + "/") if root != "/" else real

    @contextmanager
    def entered(self, real: str, *, makes: bool = False) -> Iterator[Folder]:
        """The folder with this true path, open. With `makes`, what is missing of it is made, below
        the working folder only. Raises PathRefused."""
        self.refuse_by_name(real)
        marks = {
            identity_at(self.workdir): PathStanding.WORKDIR,
            identity_at(self.home): PathStanding.OURS,
        }
        descriptor, walked, standing = os.open("/", _ENTER), "", PathStanding.OUTSIDE
        try:
            for name in ["", *real.split("/")[1:]]:
                if name:
                    walked += f"/{name}"
                    may_make = makes and standing is PathStanding.WORKDIR
                    with self.in_words(walked):
                        deeper = _open_below(descriptor, name, makes=may_make)
                    os.close(descriptor)
                    descriptor = deeper
                # The last that is met on the way counts: either may lie in the other.
                standing = marks.get(identity_of(os.fstat(descriptor)), standing)
            if standing is PathStanding.OURS:
                raise PathRefused(
                    f"{self.named(real)} belongs to the gateway itself: it is off limits"
                )
            if standing is PathStanding.OUTSIDE and is_below(real, SYSTEM_FOLDERS):
                raise PathRefused(f"{real} is made up by the system; use `terminal` to look at it")
            yield Folder(descriptor=descriptor, path=walked or "/", standing=standing)
        finally:
            os.close(descriptor)

    def stat_in(self, folder: Folder, name: str) -> os.stat_result | None:
        """What the file is; None if there is none. Raises PathRefused for all but regular files."""
        shown = self.named(os.path.join(folder.path, name))
        try:
            with self.in_words(os.path.join(folder.path, name)):
                found = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
        except PathRefused as refused:
            if isinstance(refused.__cause__, FileNotFoundError):
                return None
            raise
        if stat.S_ISDIR(found.st_mode):
            raise PathRefused(f"{shown} is a folder")
        if not stat.S_ISREG(found.st_mode):
            raise PathRefused(f"{shown} is not a regular file")
        # Another name of one of our files. Opening it would be enough to do harm: closing it again
        # drops the locks that this process holds on it.
        if found.st_nlink > 1 and identity_of(found) in self._files_of_home():
            raise PathRefused(f"{shown} belongs to the gateway itself: it is off limits")
        return found

    def opened_in(self, folder: Folder, name: str) -> int:
        """A regular file, open for reading. Raises PathRefused."""
        real = os.path.join(folder.path, name)
        self.refuse_by_name(real)
        if self.stat_in(folder, name) is None:
            raise PathRefused(f"{self.named(real)} does not exist")
        with self.in_words(real):
            descriptor = os.open(name, _READ, dir_fd=folder.descriptor)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise PathRefused(f"{self.named(real)} is not a regular file")

    def refuse_by_name(self, real: str) -> None:
        """Raises PathRefused for what holds keys, wherever it is."""
        names = {name.casefold() for name in real.split("/")}
        if names.intersection(KEY_FOLDERS) or real in KEY_FILES:
            raise PathRefused(
                f"{self.named(real)} may hold keys: file tools leave it alone. If it has to be, "
                "use `terminal`: the person is asked first"
            )

    @contextmanager
    def in_words(self, real: str) -> Iterator[None]:
        """What goes wrong with a file inside is Refused, with its name."""
        try:
            yield
        except OSError as error:
            raise PathRefused(f"{self.named(real)} {words_for(error)}") from error

    def _files_of_home(self) -> set[Identity]:
        with suppress(OSError), os.scandir(self.home) as entries:
            return {identity_of(entry.stat(follow_symlinks=False)) for entry in entries}
        return set()


def temporary_name(owner: str) -> str:
    """The name of a file that is about to take the place of another."""
    return f".koboshi-{owner}.new"


def is_temporary(name: str) -> bool:
    return name.startswith(".koboshi-") and name.endswith(".new")


def identity_of(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def identity_at(path: str) -> Identity | None:
    """What is there; None if nothing is."""
    with suppress(OSError):
        return identity_of(os.stat(path))
    return None


def is_below(real: str, folders: tuple[str, ...]) -> bool:
    return any(real == folder or real.startswith(f"{folder}/") for folder in folders)


_WORDS = {
    errno.ENOENT: "does not exist",
    errno.EACCES: "is not ours to open: permission denied",
    errno.EPERM: "is not ours to open: permission denied",
    errno.ENOTDIR: "is not a folder",
    errno.ELOOP: "has become a link while it was opened",
    errno.ENAMETOOLONG: "has a name that is too long",
}


def words_for(error: OSError) -> str:
    """What went wrong with a file, to be read behind its name."""
    said = (error.strerror or str(error)).lower()
    return _WORDS.get(error.errno or 0, f"can not be used: {said}")


def sync_folder(descriptor: int) -> None:
    """Make the names in a folder durable."""
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=descriptor)
    try:
        os.fsync(readable)
    finally:
        os.close(readable)


def _open_below(descriptor: int, name: str, *, makes: bool) -> int:
    try:
        return os.open(name, _ENTER | os.O_NOFOLLOW, dir_fd=descriptor)
    except FileNotFoundError:
        if not makes:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=descriptor)
    sync_folder(descriptor)
    return os.open(name, _ENTER | os.O_NOFOLLOW, dir_fd=descriptor)
