"""Fill a database with sessions and closed turns, straight into the schema.

Every constraint and foreign key of the schema is checked row by row. Only what follows from the
rows is put away meanwhile and made again at the end: indexes, and the triggers of the journal,
whose lines are inserted directly.
"""

import time
from pathlib import Path

import apsw

from benchmarks.place import BenchmarkFailed
from koboshi.kernel.sql import load_queries
from koboshi.stores.sqlite.file import open_writer

CHANNEL = "web:main"
_CHUNK = 20_000
_TABLES = ("turns", "inbox", "steps", "calls", "outbox", "journal")
_TEXT = "The quick brown fox jumps over the lazy dog, and the dog does not mind. " * 2
_FOR_SPEED = (
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA cache_size = -500000",
    "PRAGMA foreign_keys = ON",
)


def fill(file: Path, *, sessions: int, turns: int) -> None:
    """Make `file` with `turns` closed turns, spread evenly over `sessions` sessions.

    It is left as a gateway would have left it: write-ahead log, nothing owed, no worker alive.
    """
    queries = load_queries("benchmarks", "fill.sql")
    connection = open_writer(file)
    for pragma in _FOR_SPEED:
        connection.execute(pragma)
    side_work = [
        (str(kind), str(name), str(made_by))
        for kind, name, made_by in connection.execute(queries["side_work"]).fetchall()
    ]
    for kind, name, _ in side_work:
        connection.execute(f'DROP {kind} "{name}"')
    _insert(connection, queries, sessions, turns)
    for _, _, made_by in side_work:
        connection.execute(made_by)
    if connection.pragma("foreign_key_check") is not None:
        raise BenchmarkFailed("the filled database breaks a foreign key")
    connection.pragma("journal_mode", "wal")
    connection.close()


def _insert(
    connection: apsw.Connection, queries: dict[str, str], sessions: int, turns: int
) -> None:
    """In chunks, so that the plan of what to insert stays small."""
    every: dict[str, str | int] = {
        "sessions": sessions,
        "turns": turns,
        "now": time.time_ns() // 1_000_000,
        "channel": CHANNEL,
        "text": _TEXT,
    }
    with connection:
        connection.execute(queries["plan_table"])
        connection.execute(queries["worker"], every)
        connection.execute(queries["sessions"], every)
    for first in range(1, turns + 1, _CHUNK):
        chunk = every | {"first": first, "last": min(first + _CHUNK - 1, turns)}
        with connection:
            for name in ("plan_clear", "plan_chunk", *_TABLES):
                connection.execute(queries[name], chunk)
