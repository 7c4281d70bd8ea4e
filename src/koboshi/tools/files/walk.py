"""Going through folders, shallow ones first, within bounds. Standard library only."""

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from koboshi.tools.files.places import FilePlaces, Folder, PathRefused, is_temporary

NOT_ENTERED = frozenset(
    ".git .hg .svn .venv .tox .mypy_cache .ruff_cache node_modules __pycache__".split()
)
"""Folders that programs keep for themselves: seen, and entered only if they are asked for."""


class FileKind(StrEnum):
    FOLDER = "folder"
    FILE = "file"
    LINK = "link"  # never followed: there may be no end to it
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderEntry:
    path: str
    """Relative to where the walk began."""
    name: str
    kind: FileKind
    size: int


@dataclass(slots=True, kw_only=True)
class Walk:
    """The folders below `start`, a true path, each open and with its entries in order.

    What must not be entered is left out. Raises PathRefused if that is the start.
    """

    places: FilePlaces
    start: str
    depth_max: int
    entries_max: int
    is_cut_short: bool = field(default=False, init=False)
    """There was more than `entries_max`."""
    unreadable: int = field(default=0, init=False)
    """Folders that could not be entered."""

    def folders(self) -> Iterator[tuple[Folder, list[FolderEntry]]]:
        left = self.entries_max
        waiting = deque([("", 1)])
        while waiting:
            below, depth = waiting.popleft()
            try:
                with self.places.entered(os.path.join(self.start, below).rstrip("/") or "/") as at:
                    entries = self._entries(at, below, left)
                    left -= len(entries)
                    yield at, entries
            except PathRefused:
                if not below:
                    raise
                self.unreadable += 1
                continue
            if depth < self.depth_max:
                waiting.extend(
                    (each.path, depth + 1)
                    for each in entries
                    if each.kind is FileKind.FOLDER and each.name not in NOT_ENTERED
                )
            if self.is_cut_short:
                return

    def _entries(self, folder: Folder, below: str, at_most: int) -> list[FolderEntry]:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        with self.places.in_words(folder.path):
            descriptor = os.open(".", flags, dir_fd=folder.descriptor)
            try:
                with os.scandir(descriptor) as scanned:
                    lasting = (each for each in scanned if not is_temporary(each.name))
                    found = [_entry(each, below) for each in islice(lasting, at_most + 1)]
            finally:
                os.close(descriptor)
        if len(found) > at_most:
            self.is_cut_short = True
            found = found[:at_most]
        return sorted(found, key=lambda entry: entry.name)


def _entry(scanned: "os.DirEntry[str]", below: str) -> FolderEntry:
    kind, size = FileKind.OTHER, 0
    if scanned.is_symlink():
        kind = FileKind.LINK
    elif scanned.is_dir(follow_symlinks=False):
        kind = FileKind.FOLDER
    elif scanned.is_file(follow_symlinks=False):
        kind, size = FileKind.FILE, _size(scanned)
    return FolderEntry(
        path=os.path.join(below, scanned.name), name=scanned.name, kind=kind, size=size
    )


def _size(scanned: "os.DirEntry[str]") -> int:
    try:
        return scanned.stat(follow_symlinks=False).st_size
    except OSError:
        return 0  # it is gone again
