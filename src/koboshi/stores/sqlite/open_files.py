"""Whether the names in the home still mean the files that this process has open.

A home can be removed, moved or replaced under its owner. SQLite goes on with the open files then,
and whatever is committed is in files that no start will ever find. Only names are looked at here:
a second `open()` of the database would drop SQLite's locks on it.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from koboshi.domain.errors import StoreFailed


class HomeGone(StoreFailed):
    """The home was removed or replaced under us: nothing more may be acknowledged."""


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """The files that matter, by their names, with what tells each from any other."""

    found: tuple[tuple[str, int, int], ...]

    def check(self) -> None:
        """Raises HomeGone if one of them has gone. It is asked at every commit, and costs a few
        microseconds."""
        for name, device, inode in self.found:
            try:
                now = os.stat(name)
            except (FileNotFoundError, NotADirectoryError):
                raise HomeGone(f"{name} was removed while it was in use") from None
            except OSError:
                # Nobody can tell, and a look that fails is not a file that is gone.
                continue
            if (now.st_dev, now.st_ino) != (device, inode):
                raise HomeGone(f"{name} was replaced while it was in use")


def look_at_open_files(paths: Iterable[Path]) -> OpenFiles:
    """Those of the files that are there; each must have been opened by now."""
    found = []
    for path in paths:
        try:
            now = path.stat()
        except FileNotFoundError:
            continue
        found.append((str(path), now.st_dev, now.st_ino))
    return OpenFiles(tuple(found))


NO_FILES = OpenFiles(())
