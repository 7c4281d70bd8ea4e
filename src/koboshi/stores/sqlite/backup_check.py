"""What proves that a file is a whole backup of ours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import apsw

from koboshi.domain.errors import StoreRefused
from koboshi.stores.sqlite.migrate import APPLICATION_ID, newest_version
from koboshi.stores.sqlite.transaction import SqliteReading

STEPS_BETWEEN_LOOKS = 20_000
"""Of SQLite's own machine: some milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """What a whole backup holds."""

    version: int
    bytes: int
    rows: Mapping[str, int]


def prove(backup: Path, go_on: Callable[[], bool] = lambda: True) -> Proven:
    """Read all of the file. `go_on` is asked every now and then, and may end it with False.

    Raises StoreRefused that says what is wrong with it. The file is not changed.
    """
    if not backup.is_file():
        raise StoreRefused(f"{backup} is not a file")
    if _has_log(backup):
        raise StoreRefused(
            f"{backup} has a log beside it: it is a database in use, or one that was copied by "
            "hand, and no backup; `koboshi backup create` makes one"
        )
    try:
        # No process writes to a backup. `immutable` says so, and SQLite makes no files beside it.
        name = f"{backup.absolute().as_uri()}?immutable=1"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(name, flags=flags)
        try:
            return _proven(connection, backup, go_on)
        finally:
            connection.close()
    except apsw.InterruptError as error:
        raise StoreRefused(f"the check of {backup} was ended before it was through") from error
    except apsw.Error as error:
        raise StoreRefused(f"{backup} is damaged, or no database: {error}") from error


def rows_of(connection: apsw.Connection) -> dict[str, int]:
    """How many rows each table has."""
    rows = SqliteReading(connection).rows("rows_by_table")
    return {str(name): int(str(count)) for name, count in rows}


def _proven(connection: apsw.Connection, backup: Path, go_on: Callable[[], bool]) -> Proven:
    connection.set_progress_handler(lambda: not go_on(), STEPS_BETWEEN_LOOKS)
    if connection.pragma("application_id") != APPLICATION_ID:
        raise StoreRefused(f"{backup} is a database of another program")
    version, newest = connection.pragma("user_version"), newest_version()
    if version > newest:
        raise StoreRefused(
            f"{backup} was written by a newer koboshi (schema {version}, this one knows {newest})"
        )
    fault = connection.pragma("integrity_check")
    if fault != "ok":
        raise StoreRefused(f"{backup} is damaged: {fault}")
    if connection.execute("PRAGMA foreign_key_check").fetchall():
        raise StoreRefused(f"{backup} is damaged: rows of it name others that are not there")
    return Proven(version=version, bytes=backup.stat().st_size, rows=rows_of(connection))


def _has_log(backup: Path) -> bool:
    log = backup.with_name(f"{backup.name}-wal")
    return log.exists() and log.stat().st_size > 0
