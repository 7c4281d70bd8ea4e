"""Everything in the home is for its owner alone, also what an earlier version made otherwise."""

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

_OTHERS = 0o077


def close_home(home: Path, *, but: Collection[Path] = ()) -> int:
    """Take the rights of others away from all that is in the home, but what is below these folders.
    Links are not followed. Returns how many files and folders were open. Never raises OSError: what
    cannot be changed stays, and the home itself is closed."""
    return sum(_close(entry) for entry in _below(home, frozenset(map(str, but))))


def close_files(home: Path) -> int:
    """The same for the files of the home itself, which are few."""
    try:
        with os.scandir(home) as entries:
            return sum(_close(entry) for entry in list(entries))
    except OSError:
        return 0


def _below(folder: str | Path, but: Collection[str]) -> Iterator["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:
        return
    for entry in found:
        if entry.path in but:
            continue
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, but)


def _close(entry: "os.DirEntry[str]") -> int:
    try:
        found = entry.stat(follow_symlinks=False)
        is_open = bool(found.st_mode & _OTHERS) and not stat.S_ISLNK(found.st_mode)
        if not is_open or found.st_uid != os.geteuid():
            return 0
        mode = stat.S_IMODE(found.st_mode) & ~_OTHERS
        if stat.S_ISSOCK(found.st_mode) or stat.S_ISFIFO(found.st_mode):
            os.chmod(entry.path, mode)
        else:
            _change(entry.path, mode)
    except OSError:
        return 0
    return 1


def _change(path: str, mode: int) -> None:
    """Change what is there now, and not what a link of that name would lead to."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
