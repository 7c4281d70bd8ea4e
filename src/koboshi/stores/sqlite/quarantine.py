"""What happens to a damaged database: it is kept aside, never repaired in place."""

import os
import shutil
from pathlib import Path

import apsw

from koboshi.domain.errors import StoreRefused
from koboshi.kernel.deliveries import hold_after_going_back
from koboshi.stores.faults import CrashPoint
from koboshi.stores.sqlite.backup_check import prove
from koboshi.stores.sqlite.file import DATABASE_NAME
from koboshi.stores.sqlite.migrate import BACKUPS_NAME, migrate
from koboshi.stores.sqlite.transaction import SqliteReading, SqliteTransaction
from koboshi.stores.sqlite.witness import forget_witness

QUARANTINE_NAME = "quarantine"
PROCESSES_NAME = "processes"
RESTORING_NAME = f"{DATABASE_NAME}.restoring"
PREPARING_NAME = f"{DATABASE_NAME}.preparing"
NOWHERE = CrashPoint("")
_SUFFIXES = ("", "-wal", "-shm")


def begin_empty(home: Path, stamp: str) -> Path:
    """Make way for a new database; returns the folder with what was there."""
    forget_witness(home)
    kept = set_aside(home, stamp)
    set_processes_aside(home, 0, kept.name)
    return kept


def set_aside(home: Path, stamp: str) -> Path:
    """Move the database with its log to a folder of its own; returns the folder."""
    folder, number = home / QUARANTINE_NAME / stamp, 1
    while folder.exists():
        number += 1
        folder = home / QUARANTINE_NAME / f"{stamp}-{number}"
    folder.mkdir(parents=True, mode=0o700)
    for suffix in _SUFFIXES:
        part = home / f"{DATABASE_NAME}{suffix}"
        if part.exists():
            os.rename(part, folder / part.name)
    flush(folder)
    flush(home)
    return folder


def newest_backup(home: Path) -> Path | None:
    """The newest backup that proves to be whole."""
    backups = sorted((home / BACKUPS_NAME).glob("*.db"), key=written_ns, reverse=True)
    return next((backup for backup in backups if is_whole(backup)), None)


def written_ns(file: Path) -> int:
    """When a file was written last; 0 for what cannot be looked at, a link to nothing say."""
    try:
        return file.stat().st_mtime_ns if file.is_file() else 0
    except OSError:
        return 0


def is_whole(backup: Path) -> bool:
    """Whether the file is a database of ours without a fault."""
    try:
        prove(backup)
    except StoreRefused:
        return False
    return True


def restore(
    home: Path,
    backup: Path,
    stamp: str,
    crash_point: CrashPoint = NOWHERE,
    *,
    holds: bool = True,
) -> Path | None:
    """Put a copy of the backup in the place of the database, which is set aside; returns where,
    None if there was none. What the backup owes is held, unless nothing was said since it was made.

    The copy is whole before anything is moved: after a crash in between, `finish_restore` goes on.
    """
    crash_point.reach("restore.prepare", "before")
    _prepare(home, backup, holds=holds)
    crash_point.reach("restore.prepare", "after")
    crash_point.reach("restore.set_aside", "before")
    kept = set_aside(home, stamp) if _has_parts(home) else None
    crash_point.reach("restore.set_aside", "after")
    crash_point.reach("restore.place", "before")
    _put_in_place(home, stamp)
    crash_point.reach("restore.place", "after")
    return kept


def is_restoring(home: Path) -> bool:
    """Whether a restore died after it had moved the old file away: the home looks like a new one,
    and is not."""
    copy = home / RESTORING_NAME
    return not (home / DATABASE_NAME).exists() and copy.exists() and is_whole(copy)


def refuse_half_restored(home: Path) -> None:
    """Raises StoreRefused where a restore died in the middle: who only looks does not finish it."""
    if is_restoring(home):
        raise StoreRefused(f"{home}: a restore was interrupted; `koboshi run` finishes it")


def finish_restore(home: Path, stamp: str) -> None:
    """Go on with a restore that died in the middle."""
    # A log of the old file that was left behind would be read into the new one.
    if _has_parts(home):
        set_aside(home, stamp)
    _put_in_place(home, stamp)


def forget_restore(home: Path) -> str:
    """Remove what a restore left that died before it had moved anything: it did not happen.
    Returns what could not be removed; the next start tries again."""
    try:
        if (home / DATABASE_NAME).exists():
            for name in (RESTORING_NAME, PREPARING_NAME):
                _remove(home, name)
    except OSError as error:
        return f"what an interrupted restore left cannot be removed: {error}"
    return ""


def _has_parts(home: Path) -> bool:
    return any((home / f"{DATABASE_NAME}{suffix}").exists() for suffix in _SUFFIXES)


def _prepare(home: Path, backup: Path, *, holds: bool) -> None:
    """A copy of the backup with everything that it owes held: a restored past must not say again
    what was said since, or let in a browser that was revoked since. It gets the name by which it is
    found when that is done."""
    _remove(home, PREPARING_NAME)
    copy = home / PREPARING_NAME
    (copy_held if holds else copy_flushed)(backup, copy)
    _remove(home, RESTORING_NAME)
    os.rename(copy, home / RESTORING_NAME)
    flush(home)


def copy_held(backup: Path, copy: Path) -> None:
    """A copy of the backup, flushed, of the newest version and with everything held."""
    copy_flushed(backup, copy)
    connection = apsw.Connection(str(copy))
    # A backup of an earlier version is changed first: what holds its outbox is written for the
    # newest one.
    migrate(connection, copy, keeps_copy=False)
    tx = SqliteTransaction(connection)
    hold_after_going_back(tx, "held after a restore")
    tx.change("browsers_end")
    connection.close()
    flush_file(copy)


def copy_flushed(backup: Path, copy: Path) -> None:
    """A copy of the backup as it is, flushed."""
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    shutil.copyfile(backup, copy)
    flush_file(copy)


def _put_in_place(home: Path, stamp: str) -> None:
    connection = apsw.Connection(str(home / RESTORING_NAME))
    newest = SqliteReading(connection).number("newest_process")
    connection.close()
    set_processes_aside(home, newest, stamp)
    # The witness of the other database would report a loss that the operator has chosen.
    forget_witness(home)
    os.rename(home / RESTORING_NAME, home / DATABASE_NAME)
    for name in (RESTORING_NAME, PREPARING_NAME):
        _remove(home, name)
    flush(home)


def set_processes_aside(home: Path, newest: int, stamp: str) -> None:
    """Folders of processes that a past does not know whose newest has that id: it will give the
    later ids to others, which must not find an end that is not theirs."""
    folders = [each for each in (home / PROCESSES_NAME).glob("*") if each.name.isdecimal()]
    unknown = [each for each in folders if int(each.name) > newest]
    if not unknown:
        return
    aside = home / QUARANTINE_NAME / stamp / PROCESSES_NAME
    aside.mkdir(parents=True, mode=0o700, exist_ok=True)
    for folder in unknown:
        os.rename(folder, aside / folder.name)
    flush(aside)
    flush(home / PROCESSES_NAME)


def _remove(home: Path, name: str) -> None:
    for suffix in _SUFFIXES:
        (home / f"{name}{suffix}").unlink(missing_ok=True)


def flush_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)


def flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)
