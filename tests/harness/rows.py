"""What is on the disk of a gateway, read from a copy with nothing but SQL."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import apsw

Row: TypeAlias = dict[str, Any]

ORDERED_BY = {
    "workers": "worker_id",
    "sessions": "session_id",
    "turns": "turn_id",
    "inbox": "entry_id",
    "steps": "seq",
    "calls": "place",
    "outbox": "delivery_id",
    "processes": "process_id",
    "watchers": "watcher_id",
    "journal": "seq",
    "cursors": "channel",
    "accounts": "channel",
    "watermarks": "chat",
    "children": "child_id",
}
FILES = ("koboshi.db", "koboshi.db-wal", "koboshi.db-journal")
"""The logs are part of the truth: the second is there while a new file is made. The file of shared
memory is made anew from them."""
_WAL_HEADER_BYTES = 32
_COPIES_MAX = 100
_MEMORY = Path("/dev/shm")
"""Copies are made on a file system in memory, if there is one."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Every row of every table at one moment, as plain values."""

    workers: list[Row]
    sessions: list[Row]
    turns: list[Row]
    inbox: list[Row]
    steps: list[Row]
    calls: list[Row]
    outbox: list[Row]
    processes: list[Row]
    watchers: list[Row]
    journal: list[Row]
    cursors: list[Row]
    accounts: list[Row]
    watermarks: list[Row]
    damage: list[str]
    """What SQLite finds wrong with the file; nothing, if it is whole."""
    children: list[Row] = field(default_factory=list)

    def of(self, table: str, **fields: object) -> list[Row]:
        """The rows of a table whose fields are these."""
        rows: list[Row] = getattr(self, table)
        return [row for row in rows if all(row[name] == value for name, value in fields.items())]

    def one(self, table: str, **fields: object) -> Row:
        """The only row of a table whose fields are these."""
        found = self.of(table, **fields)
        assert len(found) == 1, f"{len(found)} rows in {table} with {fields}"
        return found[0]

    def session(self, chat: str, thread: str = "") -> int:
        """The conversation of a chat: nothing that works beside it."""
        found = self.of("sessions", chat=chat, thread=thread)
        (number,) = [int(row["session_id"]) for row in found if not row.get("aside")]
        return number

    def body(self, step: Row) -> Any:
        return json.loads(step["body"])


def read_rows(home: Path) -> Rows:
    """All rows of a home at one moment, and what is wrong with its file. The files themselves are
    not touched, whether a gateway works with them or not."""
    with _copied(home) as connection:
        return rows_in(connection, damage=_damage(connection))


def glance(home: Path) -> Rows:
    """The same without the search for damage, which takes most of the time: for polling."""
    with _copied(home) as connection:
        return rows_in(connection)


def rows_in(connection: apsw.Connection, damage: Sequence[str] = ()) -> Rows:
    """All rows that a connection sees now."""
    there = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema")}
    # A gateway that died early may have left no tables.
    tables = {table: _all(connection, table) if table in there else [] for table in ORDERED_BY}
    return Rows(**tables, damage=list(damage))


@contextmanager
def _copied(home: Path) -> Iterator[apsw.Connection]:
    memory = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="koboshi-rows-", dir=memory) as folder:
        _copy(home, Path(folder))
        connection = apsw.Connection(str(Path(folder, FILES[0])))
        # The copy is looked at once: its log is not moved into it, and it is not shared.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.pragma("locking_mode", "EXCLUSIVE")
        try:
            yield connection
        finally:
            connection.close()


def _copy(home: Path, folder: Path) -> None:
    """Copy the file and its logs as they were at one moment.

    A gateway may change them meanwhile. Pages that it moves from the log into the file do no harm:
    the log still holds them. Only a log that was begun anew, removed or made since the file was
    copied does not belong to it; then everything is copied again.
    """
    for _ in range(_COPIES_MAX):
        before = _logs(home)
        for name in FILES:
            Path(folder, name).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(home / name, folder / name)
        if _logs(home) == before:
            return
    raise AssertionError(f"the logs in {home} change faster than they can be copied")


def _logs(home: Path) -> tuple[bytes, tuple[int, int]]:
    """What tells one log from the next: the salt in the header of the one, and the size and time of
    the other, which is there only while a new file is made."""
    header, journal = b"", (0, 0)
    with suppress(FileNotFoundError), (home / FILES[1]).open("rb") as log:
        header = log.read(_WAL_HEADER_BYTES)
    with suppress(FileNotFoundError):
        stat = (home / FILES[2]).stat()
        journal = (stat.st_size, stat.st_mtime_ns)
    return header, journal


def _all(connection: apsw.Connection, table: str) -> list[Row]:
    cursor = connection.execute(f"SELECT * FROM {table} ORDER BY {ORDERED_BY[table]}")
    first = cursor.fetchone()
    if first is None:
        return []
    names = [column[0] for column in cursor.get_description()]
    return [dict(zip(names, values, strict=True)) for values in (first, *cursor)]


def _damage(connection: apsw.Connection) -> list[str]:
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
    broken = [f"foreign key: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
    return [*(words for words in found if words != "ok"), *broken]
