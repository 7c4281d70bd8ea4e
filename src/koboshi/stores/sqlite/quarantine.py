"""What happens to a damaged database: it is kept aside, never repaired in place."""

import os
import shutil
from pathlib import Path

import apsw

from koboshi.domain.outbox import HELD_MS
from koboshi.stores.sqlite.file import APPLICATION_ID, DATABASE_NAME, schema_scripts

BACKUPS_NAME = "backups"
QUARANTINE_NAME = "quarantine"
RESTORING_NAME = f"{DATABASE_NAME}.restoring"
_SUFFIXES = ("", "-wal", "-shm")


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
    _flush(folder)
    _flush(home)
    return folder


def newest_backup(home: Path) -> Path | None:
    """The newest backup that proves to be whole."""
    backups = sorted(
        (home / BACKUPS_NAME).glob("*.db"), key=lambda path: path.stat().st_mtime, reverse=True
    )
    return next((backup for backup in backups if is_whole(backup)), None)


def is_whole(backup: Path) -> bool:
    """Whether the file is a database of ours without a fault."""
    try:
        # Nobody writes to a backup: said so, SQLite leaves no files of its own beside it.
        name = f"{backup.absolute().as_uri()}?immutable=1"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(name, flags=flags)
        try:
            is_ours = connection.pragma("application_id") == APPLICATION_ID
            is_known = connection.pragma("user_version") <= max(schema_scripts())
            return bool(is_ours and is_known and connection.pragma("integrity_check") == "ok")
        finally:
            connection.close()
    except apsw.Error:
        return False


def restore(home: Path, backup: Path, stamp: str) -> Path:
    """Put a copy of the backup in the place of the database, which is set aside; returns where.

    The copy is whole before anything is moved: after a crash in between, `finish_restore` goes on.
    """
    _prepare(home, backup)
    kept = set_aside(home, stamp)
    _put_in_place(home)
    return kept


def is_restoring(home: Path) -> bool:
    """Whether a restore died after it had moved the old file away: the home looks like a new one,
    and is not."""
    copy = home / RESTORING_NAME
    return not (home / DATABASE_NAME).exists() and copy.exists() and is_whole(copy)


def finish_restore(home: Path, stamp: str) -> None:
    """Go on with a restore that died in the middle."""
    # A log of the old file that was left behind would be read into the new one.
    if any((home / f"{DATABASE_NAME}{suffix}").exists() for suffix in _SUFFIXES):
        set_aside(home, stamp)
    _put_in_place(home)


def _prepare(home: Path, backup: Path) -> None:
    """A copy of the backup with everything that it owes held: a restored past must not say again
    what was said since."""
    copy = home / RESTORING_NAME
    for suffix in _SUFFIXES:
        (home / f"{RESTORING_NAME}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(backup, copy)
    connection = apsw.Connection(str(copy))
    connection.execute(
        (Path(__file__).parent / "hold_outbox.sql").read_text(encoding="utf-8"),
        {"until_ms": HELD_MS},
    )
    connection.close()
    descriptor = os.open(copy, os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)
    _flush(home)


def _put_in_place(home: Path) -> None:
    os.rename(home / RESTORING_NAME, home / DATABASE_NAME)
    for suffix in _SUFFIXES:
        (home / f"{RESTORING_NAME}{suffix}").unlink(missing_ok=True)
    _flush(home)


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)
