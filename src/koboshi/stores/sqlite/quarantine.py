"""What happens to a damaged database: it is kept aside, never repaired in place."""

import os
import shutil
from pathlib import Path

import apsw

from koboshi.stores.sqlite.file import APPLICATION_ID, DATABASE_NAME

BACKUPS_NAME = "backups"
QUARANTINE_NAME = "quarantine"
HELD_UNTIL_MS = 2**62
"""Deliveries of a restored past are owed, but not before a person releases them."""


def set_aside(home: Path, stamp: str) -> Path:
    """Move the database with its log to a folder of its own; returns the folder."""
    folder = home / QUARANTINE_NAME / stamp
    folder.mkdir(parents=True, mode=0o700)
    for suffix in ("", "-wal", "-shm"):
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
        connection = apsw.Connection(str(backup), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            is_ours = connection.pragma("application_id") == APPLICATION_ID
            return bool(is_ours and connection.pragma("integrity_check") == "ok")
        finally:
            connection.close()
    except apsw.Error:
        return False


def put_back(home: Path, backup: Path) -> None:
    """Make a copy of the backup the database, with everything that it owes held: a restored past
    must not say again what was said since."""
    copy = home / f"{DATABASE_NAME}.restoring"
    copy.unlink(missing_ok=True)
    shutil.copyfile(backup, copy)
    connection = apsw.Connection(str(copy))
    connection.execute(
        (Path(__file__).parent / "hold_outbox.sql").read_text(encoding="utf-8"),
        {"until_ms": HELD_UNTIL_MS},
    )
    connection.close()
    descriptor = os.open(copy, os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)
    os.rename(copy, home / DATABASE_NAME)
    _flush(home)


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)
