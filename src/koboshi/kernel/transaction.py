"""What a verb works with: named queries in one transaction, on any database.

Theory of operation. A verb is a function over a `Transaction`. It reads rows, asks a pure function
of the domain what to do, and writes rows. A store hands the verb to its writer. The writer runs it
in a transaction of the database, together with the verbs of other callers, and answers each caller
after the commit. So at every moment:

* What a verb decided, and the rows that it decided from, belong to one moment. No other write to
  the same chat lies between them: SQLite has one writer, and a store with several writers takes the
  keys of the chats first (`keys.py`).
* A caller that has its answer relies on durable rows. A caller without one knows nothing. It may
  ask again, because every write is conditional or has a unique key.
* A verb may run more than once before one of its runs is committed: the disk was full, or a key was
  not free. So it reads and writes rows and does nothing else. Its only clock is `now_ms`.
* Hints wake the loops after the commit and carry no fact. A lost hint costs time and no work.

A verb knows a query by its name. The one text of the queries is `queries.sql`; `queries.py` loads
it for the stores.

The kernel has six layers, and a module imports only from below: the transaction and the values of
columns; typed rows, moves, keys and the context; facts and single effects; what follows from an
effect; verdicts, admission and the operator's actions; verbs. `tests/test_imports.py` holds it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from koboshi.domain.ids import SessionId

Value: TypeAlias = str | int | None
Row: TypeAlias = tuple[Value, ...]
Outcome = TypeVar("Outcome")
Item = TypeVar("Item")


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

    @property
    def uses_keys(self) -> bool:
        """Whether others may write at the same time. Else no key is looked for (`keys.py`)."""
        ...

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
        """A number for the next step, greater than the number of every stored step."""
        ...

    def each(self, act: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
        """What `act` gives for each item, in their order. They belong to different chats, so a
        store may carry them out side by side."""
        ...

    def try_lock(self, key: int) -> bool:
        """Hold a key (`keys.py`) until the commit. False if another writer holds it."""
        ...


class Keys(NamedTuple):
    """The keys that an operation is known to need before it begins (`keys.py`)."""

    chats: tuple[int, ...] = ()
    """Keys that the caller knows."""
    sessions: tuple[SessionId, ...] = ()
    """Sessions whose keys the store looks up."""


NO_KEYS = Keys()
"""The operation finds its keys in its transaction, or writes to no session."""

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
