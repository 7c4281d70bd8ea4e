"""Room on the disk: a reserve for the moment when there is none, and a log that stays small then.

The reserve is a file of real blocks. When the disk refuses a write, it is removed: what is in
flight can finish and people can be told, while new messages wait with their platforms. It is made
again when there is room for several of it, so that a disk at its limit does not go back and forth.
Nothing follows from the file: whether it is there or not, the database is the truth.
"""

import os
from contextlib import suppress
from pathlib import Path

import apsw

from koboshi.ports.room import Reserve

RESERVE_NAME = "reserve"
PART_NAME = f"{RESERVE_NAME}.part"
RESERVE_BYTES_MAX = 8_000_000
RESERVE_SHARE = 20
"""The reserve is at most a twentieth of the volume."""
MADE_FROM = 4
"""So many times its size must be free before it is made: it never fills a disk itself."""
ENOUGH = 3
"""So many times its size must be free before new messages are taken again."""
SHORT = 6
"""Below so many times its size, the log is kept small."""
LOG_PAGES, LOG_PAGES_SHORT = 500, 16
LOG_ROOM_BYTES = 3 * LOG_PAGES * 8_192
"""Below so much, too: the log alone could fill what is left."""
LOG_BYTES_MAX = 67_108_864
SHRINK_MS, BUSY_MS = 200, 5_000
COMMITS_PER_LOOK = 8

NEW_WORK = frozenset({"inbox.accept", "turns.claim"})
"""Verbs that begin something: they wait while the disk is full."""


class DiskSpace:
    """What a writer knows of the disk under its home. Used by the writer's thread alone."""

    def __init__(self, home: Path, connection: apsw.Connection, *, is_short: bool = False) -> None:
        self._home = home
        self._connection = connection
        self._commits = 0
        self._is_log_small = False
        self.is_short = is_short
        """The disk refused a write, and there was not enough room since."""
        self.reserve_bytes = 0 if is_short else make_reserve(home)
        """What is kept back now."""
        self._size_log()

    def ran_out(self) -> bool:
        """The disk refused a write. Returns whether that was news."""
        was_short, self.is_short = self.is_short, True
        give_up_reserve(self._home)
        self.reserve_bytes = 0
        self._keep_log_small(True)
        self._shrink_log()
        return not was_short

    def committed(self) -> None:
        """Look around now and then, so that the log is small before there is no room for it."""
        self._commits += 1
        if not self.is_short and self._commits % COMMITS_PER_LOOK == 0:
            self._size_log()
            if not self.reserve_bytes:
                self.reserve_bytes = make_reserve(self._home)

    def look(self) -> None:
        """Whether there is room again."""
        size, free = _reserve_size(self._home)
        if self.is_short and free >= ENOUGH * size:
            self.is_short = False
            self._size_log()
        if not self.is_short and not self.reserve_bytes:
            self.reserve_bytes = make_reserve(self._home)

    def _size_log(self) -> None:
        size, free = _reserve_size(self._home)
        self._keep_log_small(self.is_short or free < max(SHORT * size, LOG_ROOM_BYTES))

    def _keep_log_small(self, is_small: bool) -> None:
        if is_small == self._is_log_small:
            return
        self._is_log_small = is_small
        pages, limit = (LOG_PAGES_SHORT, 0) if is_small else (LOG_PAGES, LOG_BYTES_MAX)
        self._connection.pragma("wal_autocheckpoint", pages)
        self._connection.pragma("journal_size_limit", limit)

    def _shrink_log(self) -> None:
        """Move what the log holds into the database, where most of its pages have their place
        already, and give its room back. A reader may be in the way for a moment."""
        self._connection.set_busy_timeout(SHRINK_MS)
        try:
            with suppress(apsw.FullError, apsw.BusyError, apsw.LockedError):
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            self._connection.set_busy_timeout(BUSY_MS)


def make_way(home: Path) -> bool:
    """Give up the reserve of an earlier boot where not even a start has room. Returns whether that
    was so."""
    size, free = _reserve_size(home)
    if free >= size // 4 or not (home / RESERVE_NAME).exists():
        return False
    give_up_reserve(home)
    return True


def make_reserve(home: Path) -> int:
    """Keep room back, if there is plenty. Returns how many bytes are kept back now."""
    size, free = _reserve_size(home)
    try:
        (home / PART_NAME).unlink(missing_ok=True)
        if kept := _kept_bytes(home, size):
            return kept
        if not size or free < MADE_FROM * size:
            return 0
        _fill(home / PART_NAME, size)
        os.replace(home / PART_NAME, home / RESERVE_NAME)
    except OSError:
        # Without it everything goes on as before; it is tried again.
        with suppress(OSError):
            (home / PART_NAME).unlink(missing_ok=True)
        return 0
    return size


def look_at_reserve(home: Path) -> Reserve:
    """How it stands, for a caller that only reads."""
    size, free = _reserve_size(home)
    return Reserve(
        kept_bytes=_kept_bytes(home, size),
        wanted_bytes=size,
        free_bytes=free,
        made_from_bytes=MADE_FROM * size,
    )


def give_up_reserve(home: Path) -> None:
    for name in (RESERVE_NAME, PART_NAME):
        with suppress(OSError):
            (home / name).unlink(missing_ok=True)


def _kept_bytes(home: Path, size: int) -> int:
    """The size of a reserve that is whole, and no hole; else 0."""
    try:
        held = (home / RESERVE_NAME).stat()
    except OSError:
        return 0
    return held.st_size if held.st_size >= size and held.st_blocks * 512 >= size else 0


def _reserve_size(home: Path) -> tuple[int, int]:
    """How large the reserve is to be on this volume, and how much is free there."""
    try:
        found = os.statvfs(home)
    except OSError:
        return 0, 0
    whole, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    return min(RESERVE_BYTES_MAX, whole // RESERVE_SHARE), free


def _fill(path: Path, size: int) -> None:
    """A file of that size with real blocks: a hole would keep nothing back."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)
