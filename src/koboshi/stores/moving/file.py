"""The end of a move that is a file, and any file that is made from the rows of a server."""

import os
from datetime import UTC, datetime
from pathlib import Path

import apsw

from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.stores.marks import Mark
from koboshi.stores.moving.table_rows import (
    Carried,
    Connection,
    Tell,
    carried_in_file,
    carried_in_server,
    into_file,
)
from koboshi.stores.sqlite.file import DATABASE_NAME, mark_in, open_writer
from koboshi.stores.sqlite.migrate import migrate
from koboshi.stores.sqlite.quarantine import QUARANTINE_NAME, flush, flush_file
from koboshi.stores.sqlite.transaction import SqliteTransaction
from koboshi.stores.sqlite.witness import forget_witness

ARRIVING_NAME = f"{DATABASE_NAME}.arriving"
_PRAGMAS = ("PRAGMA page_size = 8192", "PRAGMA synchronous = OFF", "PRAGMA foreign_keys = OFF")
"""A new file is flushed as a whole, and counts for nothing before."""


def write_file(
    path: Path, server: Connection, tell: Tell, mark: Mark | None = None
) -> dict[str, Carried]:
    """A new file with the rows that the transaction of the server sees, flushed. Returns what it
    holds. Raises StoreRefused where the file does not hold what the server has."""
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    file = apsw.Connection(str(path))
    try:
        migrate(file, path, keeps_copy=False)
        for pragma in _PRAGMAS:
            file.execute(pragma)
        # What happened is in the rows of the journal: nothing happens here.
        file.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        with file:
            into_file(file, server, tell)
            if mark is not None:
                SqliteTransaction(file).change("move_set", **mark.values())
        carried = dict(carried_in_file(file))
        refuse_difference(carried, dict(carried_in_server(server)))
    except (apsw.FullError, apsw.IOError) as error:
        raise StoreFailed(f"{path} cannot be written now: {error}") from error
    finally:
        file.close()
    flush_file(path)
    return carried


def refuse_difference(there: dict[str, Carried], here: dict[str, Carried]) -> None:
    """Raises StoreRefused where two ends do not hold the same rows."""
    for name, carried in here.items():
        if there[name] != carried:
            raise StoreRefused(
                f"the copy of {name} is not what was copied: {there[name].rows} rows for "
                f"{carried.rows}; nothing was changed"
            )


def put_in_place(home: Path, now_ms: int) -> None:
    """Give the file that has arrived its name. One with rows that no longer count is kept aside;
    at no moment there is none, which a start would take for a new home."""
    path = home / DATABASE_NAME
    if path.exists():
        # Its log is moved into it, and is gone when it is closed.
        open_writer(path, may_be_idle=True).close()
        stamp = datetime.fromtimestamp(now_ms / 1000, tz=UTC).strftime("%Y%m%dT%H%M%S%f")
        folder = home / QUARANTINE_NAME / f"{stamp}-moved"
        folder.mkdir(parents=True, mode=0o700)
        os.link(path, folder / DATABASE_NAME)
        flush(folder)
    forget_witness(home)
    os.replace(home / ARRIVING_NAME, path)
    flush(home)


def mark_of_home(home: Path) -> Mark | None:
    """What the file in the home says of its rows; None without one, or if they count."""
    path = home / DATABASE_NAME
    if not path.exists():
        return None
    file = open_writer(path, may_be_idle=True)
    try:
        return mark_in(file)
    finally:
        file.close()


def set_mark(home: Path, mark: Mark) -> None:
    """Durable when it returns."""
    file = open_writer(home / DATABASE_NAME, may_be_idle=True)
    try:
        with file:
            SqliteTransaction(file).change("move_set", **mark.values())
    finally:
        file.close()
