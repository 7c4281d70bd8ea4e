"""Taking back a change of the schema that a version made which never served."""

from datetime import UTC, datetime
from pathlib import Path

import apsw

from koboshi.domain.errors import StoreRefused
from koboshi.ports.clock import Clock
from koboshi.stores.lock import take_lock
from koboshi.stores.sqlite.backup_check import prove
from koboshi.stores.sqlite.file import DATABASE_NAME
from koboshi.stores.sqlite.migrate import BACKUPS_NAME, newest_version
from koboshi.stores.sqlite.quarantine import finish_restore, is_restoring, restore


async def undo_migration(home: Path, *, clock: Clock, lock_wait_seconds: float) -> Path | None:
    """Put back the copy that was made before the schema became newer than this program knows.

    Only for a database that received nothing since: the caller knows that. Nothing is held, because
    nothing was said since. Returns the folder with the newer database, None if nothing was to
    be done. A kill at any step leaves one that can be repeated. Raises HomeHeld and StoreRefused.
    """
    who = "koboshi, going back"
    lock = await take_lock(home, wait_seconds=lock_wait_seconds, clock=clock, who=who)
    try:
        stamp = datetime.fromtimestamp(clock.now_ms() / 1000, tz=UTC).strftime("%Y%m%dT%H%M%S%f")
        if is_restoring(home):
            finish_restore(home, stamp)
        version = _version_of(home / DATABASE_NAME)
        if version <= newest_version():
            return None
        copy = home / BACKUPS_NAME / f"before-schema-{version}.db"
        found = prove(copy)
        if found.version > newest_version():
            raise StoreRefused(f"{copy} is of schema {found.version}, which is too new as well")
        return restore(home, copy, stamp, holds=False)
    finally:
        lock.release()


def _version_of(path: Path) -> int:
    """The schema of the database, its log included; 0 if there is none."""
    if not path.exists():
        return 0
    connection = apsw.Connection(str(path))
    try:
        version: int = connection.pragma("user_version")
    finally:
        connection.close()
    return version
