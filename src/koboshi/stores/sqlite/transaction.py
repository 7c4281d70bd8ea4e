"""What an operation of the store works with: named queries on one connection."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias, TypeVar, cast

import apsw

from koboshi.stores.sql import load_queries

Value: TypeAlias = str | int | None
Row: TypeAlias = tuple[Value, ...]
Outcome = TypeVar("Outcome")

QUERIES: Mapping[str, str] = load_queries("koboshi.stores.sqlite", "queries.sql")


class Reading:
    """One consistent look at the database. `now_ms` is the moment of it."""

    __slots__ = ("_connection", "_cursor", "now_ms")

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self.now_ms = 0

    def rows(self, query: str, **values: Value) -> list[Row]:
        """All rows that the named query gives."""
        return cast("list[Row]", self._cursor.execute(QUERIES[query], values).fetchall())

    def row(self, query: str, **values: Value) -> Row | None:
        """The first row that the named query gives."""
        # All of them are fetched: a statement that is not run to its end would hold up the commit.
        found = self.rows(query, **values)
        return found[0] if found else None

    def number(self, query: str, **values: Value) -> int:
        """The single number that the named query gives."""
        found = self.row(query, **values)
        if found is None or not isinstance(found[0], int):
            raise TypeError(f"query {query!r} gave no number")
        return found[0]


class Looker(Protocol):
    """Who lets others look at the database."""

    async def read(self, look: Callable[[Reading], Outcome]) -> Outcome:
        """What `look` sees: one moment."""
        ...


class Transaction(Reading):
    """One operation inside the running transaction. `hints` are given after the commit."""

    __slots__ = ("hints",)

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.hints: set[str] = set()

    def change(self, query: str, **values: Value) -> int:
        """Run the named query; how many rows it touched itself."""
        self._cursor.execute(QUERIES[query], values)
        return self._connection.changes()

    def last_id(self) -> int:
        """The id of the row that was inserted last."""
        return self._connection.last_insert_rowid()

    def insert(self, query: str, **values: Value) -> int:
        """Run the named query; the id of the row that it inserted."""
        self._cursor.execute(QUERIES[query], values)
        return self._connection.last_insert_rowid()
