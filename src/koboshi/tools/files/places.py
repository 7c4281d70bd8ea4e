"""Which files the tools may open, and the only way to open them. Standard library only: the program
that searches uses it as well.

A path is resolved first, and then opened folder by folder without following links. So a link that
is put in its way meanwhile leads nowhere, and each folder on the way is recognised by what it is
and not by how it is spelt.

With a view, paths are those of the programs inside the boundary, and nothing exists for the tools
that does not exist for a command (`inside.py`). Without one, on the host, they are the machine's.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from koboshi.boundary.view import View, is_below
from koboshi.tools.danger import KEY_FILES, KEY_FOLDERS, KEY_NAMES
from koboshi.tools.files.inside import ENTER, expand_home, open_folder, resolve_inside

SYSTEM_FOLDERS = ("/dev", "/proc", "/sys")
"""What is in there is made up while it is read: some of it never ends, some tells of us."""

Identity: TypeAlias = tuple[int, int]
"""Device and inode: what a file is, however it is called."""

# A pipe without a writer must not keep us waiting, nor a link be followed.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class PathRefused(Exception):
    """It cannot be done, or must not be; in words that name the path."""


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
    secrets: tuple[str, ...] = ()
    """Files and folders with secrets of the gateway, wherever they are."""
    view: View | None = None
    """What exists inside the boundary; None: everything, on the host."""

    def resolve(self, path: str) -> str:
        """The true path that is meant, links followed. It need not exist. Raises PathRefused."""
        if self.view is None:
            return os.path.realpath(os.path.join(self.workdir, os.path.expanduser(path)))
        named = os.path.join(self.workdir, expand_home(self.view, path))
        resolved = resolve_inside(self.view, named)
        if resolved is None:
            raise PathRefused(f"{path} leads through too many links")
        return resolved

    def named(self, real: str) -> str:
        """A true path as the tools show it: relative to the working folder if it is below."""
        root = os.path.realpath(self.workdir)
        outside = self._located(real) or real
        if outside == root:
            return "."
        below = outside.removeprefix(root.rstrip("/") + "/")
        return real if below == outside or root == "/" else below

    @contextmanager
    def entered(self, real: str, *, makes: bool = False) -> Iterator[Folder]:
        """The folder with this true path, open. With `makes`, what is missing of it is made, below
        the working folder only. Raises PathRefused."""
        if self.view is not None:
            with self._entered_inside(self.view, real, makes=makes) as folder:
                yield folder
            return
        self.refuse_by_name(real)
        marks = {
            identity_at(self.workdir): PathStanding.WORKDIR,
            identity_at(self.home): PathStanding.OURS,
            **{identity_at(secret): PathStanding.OURS for secret in self.secrets},
        }
        marks.pop(None, None)
        descriptor, walked, standing = os.open("/", ENTER), "", PathStanding.OUTSIDE
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
            if standing is PathStanding.OUTSIDE and is_system(real):
                raise PathRefused(f"{real} is made up by the system; use `terminal` to look at it")
            yield Folder(descriptor=descriptor, path=walked or "/", standing=standing)
        finally:
            os.close(descriptor)

    @contextmanager
    def _entered_inside(self, view: View, real: str, *, makes: bool) -> Iterator[Folder]:
        outside = self._visible(real)
        is_ours = view.may_write(outside)
        descriptor, walked = os.open("/", ENTER), ""
        try:
            for name in outside.split("/")[1:] if outside != "/" else []:
                walked += f"/{name}"
                may_make = makes and is_ours and view.may_write(os.path.dirname(walked))
                with self.in_words(view.named(walked)):
                    deeper = _open_below(descriptor, name, makes=may_make)
                os.close(descriptor)
                descriptor = deeper
            standing = PathStanding.WORKDIR if is_ours else PathStanding.OUTSIDE
            yield Folder(descriptor=descriptor, path=real, standing=standing)
        finally:
            os.close(descriptor)

    def opened(self, real: str) -> int:
        """The regular file with this true path, open for reading. Raises PathRefused."""
        folder, name = os.path.split(real)
        if self.view is None:
            with self.entered(folder) as entered:
                return self.opened_in(entered, name)
        # A file may be visible in a folder that is not, as most of /etc.
        outside = self._visible(real)
        with self.in_words(real):
            descriptor = open_folder(os.path.dirname(outside))
        try:
            found = Folder(descriptor=descriptor, path=folder, standing=PathStanding.OUTSIDE)
            return self._opened(found, os.path.basename(outside), real)
        finally:
            os.close(descriptor)

    def is_folder(self, real: str) -> bool:
        if self.view is None:
            return os.path.isdir(real)
        try:
            with self.entered(real):
                return True
        except PathRefused:
            return False

    def may_change(self, real: str) -> bool:
        """Whether a file with this true path may be changed, if its folder may. Raises PathRefused
        if it is not visible."""
        outside = self._visible(real)
        return self.view is None or self.view.may_write(outside)

    def stat_in(self, folder: Folder, name: str) -> os.stat_result | None:
        """What the file is; None if there is none. Raises PathRefused for all but regular files."""
        real = os.path.join(folder.path, name)
        self._visible(real)
        return self._stat(folder, name, real)

    def _stat(self, folder: Folder, name: str, real: str) -> os.stat_result | None:
        shown = self.named(real)
        try:
            with self.in_words(real):
                found = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
        except PathRefused as refused:
            if isinstance(refused.__cause__, FileNotFoundError):
                return None
            raise
        if stat.S_ISDIR(found.st_mode):
            raise PathRefused(f"{shown} is a folder")
        if not stat.S_ISREG(found.st_mode):
            raise PathRefused(f"{shown} is not a regular file")
        if identity_of(found) in map(identity_at, self.secrets):
            raise PathRefused(f"{shown} holds a secret of the gateway: it is off limits")
        # Another name of one of our files. Opening it would be enough to do harm: closing it again
        # drops the locks that this process holds on it.
        if found.st_nlink > 1 and identity_of(found) in self._files_of_home():
            raise PathRefused(f"{shown} belongs to the gateway itself: it is off limits")
        return found

    def opened_in(self, folder: Folder, name: str) -> int:
        """A regular file, open for reading. Raises PathRefused."""
        real = os.path.join(folder.path, name)
        self.refuse_by_name(real)
        self._visible(real)
        return self._opened(folder, name, real)

    def _opened(self, folder: Folder, name: str, real: str) -> int:
        if self._stat(folder, name, real) is None:
            raise PathRefused(f"{self.named(real)} does not exist")
        with self.in_words(real):
            descriptor = os.open(name, _READ, dir_fd=folder.descriptor)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise PathRefused(f"{self.named(real)} is not a regular file")

    def refuse_by_name(self, real: str) -> None:
        """Raises PathRefused for what holds keys, wherever it is. Inside a boundary a command could
        read it all the same: there only what is not visible is refused."""
        if self.view is not None:
            return
        names = {name.casefold() for name in real.split("/")}
        is_key = names.intersection(KEY_FOLDERS) or os.path.basename(real) in KEY_NAMES
        if is_key or real in KEY_FILES:
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

    def _located(self, real: str) -> str | None:
        """Where the file is on this machine; None if it is not visible."""
        if self.view is None:
            return real
        outside = self.view.locate(real)
        return outside if outside is not None and self.view.may_read(outside) else None

    def _visible(self, real: str) -> str:
        """Where the file is on this machine. Raises PathRefused if it is not visible."""
        outside = self._located(real)
        if outside is not None and (
            self.view is None or self.view.may_write(outside) or not is_system(outside)
        ):
            return outside
        assert self.view is not None, "on the host everything is visible"
        shown = f"the working folder, {self.view.home}, {self.view.tmp} and the system"
        raise PathRefused(f"{real} is not visible inside the sandbox: only {shown} are")

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


def is_system(real: str) -> bool:
    """Whether it is made up by the system."""
    return any(is_below(real, folder) for folder in SYSTEM_FOLDERS)


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
    return _WORDS.get(error.errno or 0, f"cannot be used: {said}")


def sync_folder(descriptor: int) -> None:
    """Make the names in a folder durable."""
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=descriptor)
    try:
        os.fsync(readable)
    finally:
        os.close(readable)


def _open_below(descriptor: int, name: str, *, makes: bool) -> int:
    try:
        return os.open(name, ENTER | os.O_NOFOLLOW, dir_fd=descriptor)
    except FileNotFoundError:
        if not makes:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=descriptor)
    sync_folder(descriptor)
    return os.open(name, ENTER | os.O_NOFOLLOW, dir_fd=descriptor)
