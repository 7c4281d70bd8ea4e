"""What a verb works with: named queries in one transaction, whatever database carries it out.

A verb is a function over a `Transaction`. A store gives the function to its writer, which runs it
inside a transaction, together with the functions of other callers, and answers each caller after
the commit. A verb may therefore run more than once before it is committed: it reads and writes
rows, and does nothing else. The queries have names; their one text is `queries.sql`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from koboshi.domain.ids import SessionId
from koboshi.kernel.sql import load_queries

Value: TypeAlias = str | int | None
Row: TypeAlias = tuple[Value, ...]
Outcome = TypeVar("Outcome")

QUERIES: Mapping[str, str] = load_queries("koboshi.kernel", "queries.sql")


class Reading(Protocol):
    """One consistent look at the database. `now_ms` is the moment of it."""

    now_ms: int

    def rows(self, query: str, **values: Value) -> list[Row]:
        """All rows that the named query gives."""
        ...

    def row(self, query: str, **values: Value) -> Row | None:
        """The first row that the named query gives."""
        ...

    def number(self, query: str, **values: Value) -> int:
        """The single number that the named query gives."""
        ...


class Transaction(Reading, Protocol):
    """One operation inside the running transaction. `hints` are given after the commit."""

    hints: set[str]

    def change(self, query: str, **values: Value) -> int:
        """Run the named query; how many rows it touched itself."""
        ...

    def last_id(self) -> int:
        """The id of the row that was inserted last."""
        ...

    def insert(self, query: str, **values: Value) -> int:
        """Run the named query; the id of the row that it inserted."""
        ...

    def next_step(self) -> int:
        """A number for the next step: greater than that of every step there is."""
        ...

    def try_lock(self, key: int) -> bool:
        """Hold a key (`keys.py`) until the commit. False if another writer holds it."""
        ...


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that an operation is known to need before it begins (`keys.py`)."""

    chats: tuple[int, ...] = ()
    """Keys that are known."""
    sessions: tuple[SessionId, ...] = ()
    """Sessions whose keys the store knows, or finds out."""


NO_KEYS = Keys()
"""The operation finds out in its transaction what it writes to, or writes to no session."""

Operation: TypeAlias = Callable[[Transaction], Outcome]
Look: TypeAlias = Callable[[Reading], Outcome]


class Readers(Protocol):
    """Let verbs look at the database."""

    async def read(self, look: Look[Outcome]) -> Outcome:
        """What `look` sees: one moment."""
        ...


class Writer(Protocol):
    """Carries out operations, each in a transaction."""

    async def write(
        self, verb: str, operation: Operation[Outcome], keys: Keys = NO_KEYS
    ) -> Outcome:
        """The result of `operation`, once it is durable. `keys` are held while it runs."""
        ...
