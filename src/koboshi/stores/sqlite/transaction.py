"""The kernel's transaction on one SQLite connection."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, TypeAlias

import apsw

from koboshi.kernel.queries import QUERIES as KERNEL_QUERIES
from koboshi.kernel.sql import load_queries
from koboshi.kernel.transaction import Item, Outcome, Row, Value

QUERIES = {**KERNEL_QUERIES, **load_queries("koboshi.stores.sqlite", "search.sql")}
_STEP = "step_insert"
_NAME = re.compile(r"'[^']*'|--[^\n]*|:([a-z]\w*)")

Bind: TypeAlias = Callable[[dict[str, Value]], Any]


def names_in(statement: str) -> tuple[str, ...]:
    """The names of its values in the order in which SQLite numbers them."""
    return tuple(dict.fromkeys(name for name in _NAME.findall(statement) if name))


@cache
def _bind_of(statement: str) -> Bind:
    """How the values of a statement are handed over: in their order, which spares a look-up of each
    name at each run. Of none or one, there is nothing to spare."""
    names = names_in(statement)
    return itemgetter(*names) if len(names) > 1 else lambda values: values


class SqliteReading:
    """One consistent look at the database. `now_ms` is the moment of it."""

    __slots__ = ("_connection", "_cursor", "now_ms")

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self.now_ms = 0

    def rows(self, query: str, **values: Value) -> list[Row]:
        statement = QUERIES[query]
        found: list[Any] = self._cursor.execute(statement, _bind_of(statement)(values)).fetchall()
        return found

    def row(self, query: str, **values: Value) -> Row | None:
        # All of them are fetched: a statement that is not run to its end would hold up the commit.
        statement = QUERIES[query]
        found: list[Any] = self._cursor.execute(statement, _bind_of(statement)(values)).fetchall()
        return found[0] if found else None

    def number(self, query: str, **values: Value) -> int:
        found = self.row(query, **values)
        if found is None or not isinstance(found[0], int):
            raise TypeError(f"query {query!r} gave no number")
        return found[0]


class SqliteTransaction(SqliteReading):
    """One operation inside the running transaction. `hints` are given after the commit."""

    __slots__ = ("_step", "hints")
    uses_keys = False

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.hints: set[str] = set()
        self._step: int | None = None
        """The number of the next step, where this transaction has asked for it."""

    def forget(self) -> None:
        """A transaction begins, or a part of it was undone: what was known of its rows may be
        wrong."""
        self._step = None

    def change(self, query: str, **values: Value) -> int:
        statement = QUERIES[query]
        self._cursor.execute(statement, _bind_of(statement)(values))
        if query == _STEP:
            stored = values["seq"]
            assert isinstance(stored, int)
            self._step = stored + 1
        return self._connection.changes()

    def last_id(self) -> int:
        return self._connection.last_insert_rowid()

    def insert(self, query: str, **values: Value) -> int:
        statement = QUERIES[query]
        self._cursor.execute(statement, _bind_of(statement)(values))
        return self._connection.last_insert_rowid()

    def next_step(self) -> int:
        if self._step is None:
            self._step = self.number("step_next")
        return self._step

    def each(self, act: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
        return [act(item) for item in items]

    def try_lock(self, key: int) -> bool:  # noqa: ARG002  (there is one writer)
        return True
