"""What a disk may hold after the power was cut, worked out from a trace of calls.

Only what was flushed is sure. Of the writes and truncations of a file since its last flush any may
be there, in any order, each as any subset of its sectors of 512 bytes; a file that grew may
hold zeros where nothing arrived. A name that was made, changed or removed is sure once its folder
was flushed; on a file system with a journal, once anything was flushed after it. Both kinds of
file system are tried.
"""

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tests.harness.tracer import Change

SECTOR = 512
MADE_ANEW = "-shm"
"""The end of the names of files that are not read after a cut."""


@dataclass(frozen=True, slots=True)
class _Write:
    offset: int
    content: bytes


@dataclass(frozen=True, slots=True)
class _Cut:
    """The file gets this length."""

    size: int


@dataclass(slots=True, eq=False)
class _File:
    flushed: bytearray = field(default_factory=bytearray)
    unsure: list[_Write | _Cut] = field(default_factory=list)

    def flush(self) -> None:
        for change in self.unsure:
            _apply(self.flushed, change)
        self.unsure = []


@dataclass(frozen=True, slots=True)
class _Naming:
    """One change of names, all or nothing: these are gone, and this one is there."""

    gone: str = ""
    name: str = ""
    file: _File | None = None


Image: TypeAlias = dict[str, bytes]
"""The files by their names within the folder."""


class Disk:
    """The folder as it is while the changes of a trace are made, one after the other."""

    def __init__(self, folder: Path, *, has_journal: bool) -> None:
        self._folder = str(folder)
        self._has_journal = has_journal
        self._names: dict[str, _File] = {}
        self._sure: dict[str, _File] = {}
        self._unsure: list[_Naming] = []

    def make(self, change: Change) -> None:
        if change.path.endswith(MADE_ANEW) or change.call in ("mkdir", "mkdirat"):
            return
        match change.call:
            case "fsync" | "fdatasync":
                self._flush(change.path)
            case "rename" | "renameat" | "renameat2":
                file = self._names.pop(change.path)
                self._names[change.target] = file
                self._unsure.append(_Naming(gone=change.path, name=change.target, file=file))
            case "unlink" | "unlinkat":
                self._names.pop(change.path, None)
                self._unsure.append(_Naming(gone=change.path))
            case "open" | "openat" | "creat":
                self._open(change)
            case "write" | "pwrite64":
                self._names[change.path].unsure.append(_Write(change.offset, change.content))
            case "truncate" | "ftruncate":
                self._names[change.path].unsure.append(_Cut(change.size))
            case call:
                raise NotImplementedError(f"{call} of {change.path} cannot be replayed")

    def after_a_cut(self, number: int, dice: random.Random) -> Image:
        """One possible content after the cut. The first is the least, the second the most."""
        names = dict(self._sure)
        for naming in self._names_that_arrived(number, dice):
            names.pop(naming.gone, None)
            if naming.file is not None:
                names[naming.name] = naming.file
        return {
            os.path.relpath(name, self._folder): _content(file, number, dice)
            for name, file in names.items()
        }

    def _open(self, change: Change) -> None:
        if change.is_new:
            file = self._names[change.path] = _File()
            self._unsure.append(_Naming(name=change.path, file=file))
        elif change.size == 0:
            self._names[change.path].unsure.append(_Cut(0))

    def _flush(self, path: str) -> None:
        if path == self._folder or self._has_journal:
            for naming in self._unsure:
                self._sure.pop(naming.gone, None)
                if naming.file is not None:
                    self._sure[naming.name] = naming.file
            self._unsure = []
        if path in self._names:
            self._names[path].flush()

    def _names_that_arrived(self, number: int, dice: random.Random) -> Sequence[_Naming]:
        if number < 2:
            return self._unsure if number else ()
        if self._has_journal:
            return self._unsure[: dice.randint(0, len(self._unsure))]
        return [naming for naming in self._unsure if dice.random() < 0.5]


def _content(file: _File, number: int, dice: random.Random) -> bytes:
    content = bytearray(file.flushed)
    ways = ("nothing", "all", "some", "some", "torn", "torn")
    way = ways[number] if number < 2 else dice.choice(ways)
    for change in file.unsure:
        if way == "nothing" or (way == "some" and dice.random() < 0.5):
            continue
        if way == "torn" and isinstance(change, _Write):
            for sector in _sectors(change):
                if dice.random() < 0.5:
                    _apply(content, sector)
        elif way != "torn" or dice.random() < 0.5:
            _apply(content, change)
    return bytes(content)


def _sectors(write: _Write) -> list[_Write]:
    end = write.offset + len(write.content)
    starts = [write.offset, *range(write.offset // SECTOR * SECTOR + SECTOR, end, SECTOR)]
    return [
        _Write(start, write.content[start - write.offset : stop - write.offset])
        for start, stop in zip(starts, [*starts[1:], end], strict=True)
    ]


def _apply(content: bytearray, change: _Write | _Cut) -> None:
    if isinstance(change, _Cut):
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
        return
    content.extend(bytes(max(0, change.offset - len(content))))
    content[change.offset : change.offset + len(change.content)] = change.content
