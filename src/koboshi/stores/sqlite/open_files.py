"""Whether the names in the home still mean the files that this process has open.

A home can be removed, moved or replaced under its owner. SQLite goes on with the open files then,
and whatever is committed is in files that no start will ever find. Only names are looked at here:
a second `open()` of the database would drop SQLite's locks on it.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from koboshi.domain.errors import StoreFailed


class HomeGone(StoreFailed):
    """The home was removed or replaced under us: nothing more may be acknowledged."""


Named: TypeAlias = tuple[tuple[str, int, int], ...]
"""Names of files, with what tells each file from any other: its device and its inode."""


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """The files of a home that are open for as long as its store is."""

    lock: Named = ()
    database: Named = ()

    def check_lock(self) -> None:
        """Raises HomeGone if another process may own the home by now."""
        _check(self.lock)

    def check_database(self) -> None:
        """Raises HomeGone if the next start would not find what is committed."""
        _check(self.database)

    def check(self) -> None:
        self.check_lock()
        self.check_database()


def look_at_open_files(lock: Iterable[Path], database: Iterable[Path]) -> OpenFiles:
    """Those of the files that are there; each must have been opened by now."""
    return OpenFiles(lock=_named(lock), database=_named(database))


def _named(paths: Iterable[Path]) -> Named:
    found = []
    for path in paths:
        try:
            now = path.stat()
        except FileNotFoundError:
            continue
        found.append((str(path), now.st_dev, now.st_ino))
    return tuple(found)


def _check(files: Named) -> None:
    """Asked at every commit: a few microseconds."""
    for name, device, inode in files:
        try:
            now = os.stat(name)
        except (FileNotFoundError, NotADirectoryError):
            raise HomeGone(f"{name} was removed while it was in use") from None
        except OSError:
            # A look that fails does not show that the file is gone.
            continue
        if (now.st_dev, now.st_ino) != (device, inode):
            raise HomeGone(f"{name} was replaced while it was in use")


NO_FILES = OpenFiles()
