"""The kernel's transaction on one SQLite connection."""

from collections.abc import Callable, Sequence
from typing import cast

import apsw

from koboshi.kernel.queries import QUERIES as KERNEL_QUERIES
from koboshi.kernel.sql import load_queries
from koboshi.kernel.transaction import Item, Outcome, Row, Value

QUERIES = {**KERNEL_QUERIES, **load_queries("koboshi.stores.sqlite", "search.sql")}


class SqliteReading:
    """One consistent look at the database. `now_ms` is the moment of it."""

    __slots__ = ("_connection", "_cursor", "now_ms")

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self.now_ms = 0

    def rows(self, query: str, **values: Value) -> list[Row]:
        return cast("list[Row]", self._cursor.execute(QUERIES[query], values).fetchall())

    def row(self, query: str, **values: Value) -> Row | None:
        # All of them are fetched: a statement that is not run to its end would hold up the commit.
        found = self.rows(query, **values)
        return found[0] if found else None

    def number(self, query: str, **values: Value) -> int:
        found = self.row(query, **values)
        if found is None or not isinstance(found[0], int):
            raise TypeError(f"query {query!r} gave no number")
        return found[0]


class SqliteTransaction(SqliteReading):
    """One operation inside the running transaction. `hints` are given after the commit."""

    __slots__ = ("hints",)

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.hints: set[str] = set()

    def change(self, query: str, **values: Value) -> int:
        self._cursor.execute(QUERIES[query], values)
        return self._connection.changes()

    def last_id(self) -> int:
        return self._connection.last_insert_rowid()

    def insert(self, query: str, **values: Value) -> int:
        self._cursor.execute(QUERIES[query], values)
        return self._connection.last_insert_rowid()

    def next_step(self) -> int:
        return self.number("step_next")

    def each(self, act: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
        return [act(item) for item in items]

    def try_lock(self, key: int) -> bool:  # noqa: ARG002  (there is one writer)
        return True
