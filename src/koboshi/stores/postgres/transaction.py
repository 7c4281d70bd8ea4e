"""The kernel's transaction on a connection to PostgreSQL. What it asks is answered by a function
that sends it: at once for a reader, with the statements of other operations for the writer."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from koboshi.kernel.transaction import Row, Value
from koboshi.stores.postgres.translate import Statement
from koboshi.stores.postgres.wire import WireAnswer, WireRequest

Ask: TypeAlias = Callable[[WireRequest], WireAnswer]


class PostgresReading:
    """One consistent look at the database. `now_ms` is the moment of it."""

    __slots__ = ("_ask", "now_ms")

    def __init__(self, ask: Ask, now_ms: int) -> None:
        self._ask = ask
        self.now_ms = now_ms

    def rows(self, query: str, **values: Value) -> list[Row]:
        return self._ask(WireRequest(query, values)).rows

    def row(self, query: str, **values: Value) -> Row | None:
        found = self.rows(query, **values)
        return found[0] if found else None

    def number(self, query: str, **values: Value) -> int:
        found = self.row(query, **values)
        if found is None or not isinstance(found[0], int):
            raise TypeError(f"query {query!r} gave no number")
        return found[0]


class PostgresTransaction(PostgresReading):
    """One operation inside the running transaction. `hints` are given after the commit."""

    __slots__ = ("_last_id", "_statements", "_step", "_try_lock", "hints")

    def __init__(
        self,
        ask: Ask,
        now_ms: int,
        statements: Mapping[str, Statement],
        try_lock: Callable[[int], bool],
    ) -> None:
        super().__init__(ask, now_ms)
        self._statements = statements
        self._try_lock = try_lock
        self._last_id = 0
        self._step: int | None = None
        """The number of a step that was given and not used yet."""
        self.hints: set[str] = set()

    def change(self, query: str, **values: Value) -> int:
        answer = self._ask(WireRequest(query, values))
        if query == "step_insert":
            self._step = None
        if self._statements[query].gives_id and answer.rows:
            found = answer.rows[-1][0]
            assert isinstance(found, int)
            self._last_id = found
        return answer.touched

    def last_id(self) -> int:
        return self._last_id

    def insert(self, query: str, **values: Value) -> int:
        self.change(query, **values)
        return self._last_id

    def next_step(self) -> int:
        if self._step is None:
            self._step = self.number("step_next")
        return self._step

    def try_lock(self, key: int) -> bool:
        return self._try_lock(key)
