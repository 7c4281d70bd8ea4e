"""The kernel's transaction on a connection to PostgreSQL. What it asks is answered by a function
that sends it: at once for a reader, with the statements of other operations for the writer."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

from greenlet import getcurrent

from koboshi.kernel.transaction import Item, Outcome, Row, Value
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


@dataclass(slots=True)
class _Strand:
    """What belongs to one of several parts of an operation that run side by side."""

    last_id: int = 0
    step: int | None = None
    """The number of a step that was given and not used yet."""


@dataclass(slots=True)
class DrawnSteps:
    """Numbers of steps that were drawn when the keys of the batch were held. An operation that has
    `found` a key since then draws its own: another node may have added a step to that chat after
    these were drawn, with a greater number. From then on all of the batch draw their own, because
    those that follow may write to the same chats."""

    left: deque[int]
    found: Set[int]

    def take(self) -> int | None:
        if self.found:
            self.left.clear()
        return self.left.popleft() if self.left else None


class PostgresTransaction(PostgresReading):
    """One operation inside the running transaction. `hints` are given after the commit."""

    __slots__ = ("_drawn", "_each", "_statements", "_strands", "_try_lock", "hints")
    uses_keys = True

    def __init__(
        self,
        ask: Ask,
        now_ms: int,
        statements: Mapping[str, Statement],
        try_lock: Callable[[int], bool],
        each: Callable[..., list[Any]],
        drawn: DrawnSteps,
    ) -> None:
        super().__init__(ask, now_ms)
        self._drawn = drawn
        self._statements = statements
        self._try_lock = try_lock
        self._each = each
        self._strands: dict[object, _Strand] = {}
        self.hints: set[str] = set()

    def change(self, query: str, **values: Value) -> int:
        answer = self._ask(WireRequest(query, values))
        strand = self._strand()
        if query == "step_insert":
            strand.step = None
        if self._statements[query].gives_id and answer.rows:
            found = answer.rows[-1][0]
            assert isinstance(found, int)
            strand.last_id = found
        return answer.touched

    def last_id(self) -> int:
        return self._strand().last_id

    def insert(self, query: str, **values: Value) -> int:
        self.change(query, **values)
        return self._strand().last_id

    def each(self, act: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
        return self._each(act, items)

    def next_step(self) -> int:
        strand = self._strand()
        if strand.step is None:
            drawn = self._drawn.take()
            strand.step = self.number("step_next") if drawn is None else drawn
        return strand.step

    def try_lock(self, key: int) -> bool:
        return self._try_lock(key)

    def _strand(self) -> _Strand:
        current = getcurrent()
        found = self._strands.get(current)
        if found is None:
            found = self._strands[current] = _Strand()
        return found
