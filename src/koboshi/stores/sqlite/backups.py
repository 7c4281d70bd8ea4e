"""Making backups while the database is used.

A thread of its own copies one moment of the database: a read transaction is held open, so whatever
is committed meanwhile stays out. The copy is checked, flushed, and gets its name last: a file that
is called a backup is one.
"""

import os
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import apsw

from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.ports.backups import BackupStanding, BackupState
from koboshi.ports.clock import Clock
from koboshi.stores.faults import CrashPoint
from koboshi.stores.sqlite.backup_check import Proven, prove, rows_of
from koboshi.stores.sqlite.file import DATABASE_NAME, open_reader
from koboshi.stores.sqlite.migrate import BACKUPS_NAME
from koboshi.stores.sqlite.quarantine import flush, flush_file, written_ns

PAGES_AT_ONCE = 256
PART = ".part"
OURS = "koboshi-*.db"


class SqliteBackups:
    """At most one backup at a time, in a thread that ends with the store. What is copied, and how,
    is one method."""

    def __init__(self, home: Path, clock: Clock, crash_point: CrashPoint) -> None:
        self._home = home
        self._clock = clock
        self._crash_point = crash_point
        self._gate = threading.Lock()
        self._is_stopped = threading.Event()
        self._standing: BackupStanding | None = None
        self._thread: threading.Thread | None = None

    def begin(self, to: str, keep: int) -> bool:
        with self._gate:
            if self._thread is not None and self._thread.is_alive():
                return False
            self._standing = BackupStanding(state=BackupState.COPYING)
            self._thread = threading.Thread(
                target=self._make, args=(to, keep), name="koboshi-backup", daemon=True
            )
            self._thread.start()
            return True

    def standing(self) -> BackupStanding | None:
        return self._standing

    def newest_ms(self) -> int | None:
        made = [written_ns(path) for path in (self._home / BACKUPS_NAME).glob("*.db")]
        return (max(made) // 1_000_000 or None) if made else None

    def stop(self) -> None:
        """End the one that is being made, if there is one; it leaves nothing behind."""
        self._is_stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _make(self, to: str, keep: int) -> None:
        try:
            file = self._place(to)
            part = file.with_name(f"{file.name}{PART}")
            try:
                made = self._copied(part)
                self._crash_point.reach("backup.name", "before")
                _name(part, file)
                flush(file.parent)
                self._crash_point.reach("backup.name", "after")
            finally:
                part.unlink(missing_ok=True)
            removed = () if to or not keep else self._remove_old(keep)
        except (StoreRefused, StoreFailed) as error:
            self._fail(str(error))
        except (OSError, apsw.Error) as error:
            self._fail(f"the backup could not be made: {error}")
        else:
            self._tell(
                BackupStanding(
                    state=BackupState.MADE,
                    file=str(file),
                    bytes=made.bytes,
                    rows=made.rows,
                    removed=removed,
                )
            )

    def _place(self, to: str) -> Path:
        """The file that is to be made. Raises StoreRefused where one is already."""
        if to:
            file = Path(to)
            if not file.is_absolute():
                raise StoreRefused(f"{to} is not a full path")
        else:
            folder = self._home / BACKUPS_NAME
            if not folder.exists():
                folder.mkdir(mode=0o700)
                flush(self._home)
            for left in folder.glob(f"*{PART}"):
                with suppress(OSError):
                    left.unlink(missing_ok=True)
            file = folder / f"koboshi-{_stamp(self._clock.now_ms())}.db"
        if file.exists():
            raise StoreRefused(f"{file} is there already; nothing was written")
        return file

    def _copied(self, part: Path) -> Proven:
        """A flushed copy of this moment, which was read again from its first page to its last."""
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        rows = self.copy(part)
        flush_file(part)
        self._crash_point.reach("backup.check", "before")
        self._tell(BackupStanding(state=BackupState.CHECKING))
        made = prove(part, lambda: not self._is_stopped.is_set())
        if made.rows != rows:
            raise StoreRefused(f"the copy has {made.rows} rows, the database {rows}")
        self._crash_point.reach("backup.check", "after")
        return made

    def copy(self, part: Path) -> dict[str, int]:
        """Copy this moment into an empty file. Returns how many rows the tables had then."""
        source = open_reader(self._home / DATABASE_NAME)
        target = apsw.Connection(str(part))
        try:
            source.execute("BEGIN")
            rows = rows_of(source)
            with target.backup("main", source, "main") as copying:
                while not copying.done:
                    copying.step(PAGES_AT_ONCE)
                    self.copied(copying.page_count - copying.remaining, copying.page_count)
            return rows
        finally:
            target.close()
            source.close()

    def _remove_old(self, keep: int) -> tuple[str, ...]:
        """Beyond the newest; what does not carry our name is not ours to remove."""
        made = sorted((self._home / BACKUPS_NAME).glob(OURS), reverse=True)
        removed = []
        for path in made[keep:]:
            # The new backup is made, whatever stays of the old ones.
            with suppress(OSError):
                path.unlink(missing_ok=True)
                removed.append(path.name)
        return tuple(removed)

    def copied(self, done: int, pages: int) -> None:
        """Tell how far the copy is. Raises StoreRefused where it has to end."""
        if self._is_stopped.is_set():
            raise StoreRefused("the gateway stops; no backup was made")
        standing = BackupStanding(state=BackupState.COPYING, pages_done=done, pages=pages)
        self._tell(standing)

    def _fail(self, trouble: str) -> None:
        standing = self._standing or BackupStanding(state=BackupState.FAILED)
        self._tell(replace(standing, state=BackupState.FAILED, trouble=trouble))

    def _tell(self, standing: BackupStanding) -> None:
        self._standing = standing


def _name(part: Path, file: Path) -> None:
    """Give a backup its name, and never that of a file that has come there meanwhile."""
    try:
        os.link(part, file)
    except FileExistsError:
        raise
    except OSError:
        # A disk that knows no second names: the name is taken first, so nothing can be replaced.
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        os.replace(part, file)


def _stamp(now_ms: int) -> str:
    """Sorts by time; two backups of the same millisecond are refused."""
    at = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    return f"{at:%Y%m%dT%H%M%S}{at.microsecond // 1000:03d}Z"
