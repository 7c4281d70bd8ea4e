"""Connections that read the file, and never write or checkpoint."""

from collections.abc import Callable
from functools import partial

import apsw

from koboshi.domain.errors import StoreFailed
from koboshi.kernel.transaction import Look, Outcome
from koboshi.ports.clock import Clock
from koboshi.stores.reader_threads import ReaderThreads
from koboshi.stores.sqlite.file import BROKEN
from koboshi.stores.sqlite.transaction import SqliteReading


class SqliteReaders(ReaderThreads):
    """Looks are short and each sees one moment; a long one would keep the log from shrinking."""

    def __init__(
        self,
        connections: list[apsw.Connection],
        clock: Clock,
        *,
        on_broken: Callable[[StoreFailed], None],
    ) -> None:
        """`on_broken` is told, in a thread of ours, when the file cannot be read any more."""
        super().__init__([partial(_Looking, each, clock, on_broken) for each in connections])


class _Looking:
    def __init__(
        self, connection: apsw.Connection, clock: Clock, on_broken: Callable[[StoreFailed], None]
    ) -> None:
        self._connection = connection
        self._reading = SqliteReading(connection)
        self._clock = clock
        self._on_broken = on_broken

    def look(self, look: Look[Outcome]) -> Outcome:
        try:
            self._connection.execute("BEGIN")
            self._reading.now_ms = self._clock.now_ms()
            return look(self._reading)
        except BROKEN as caught:
            error = StoreFailed(f"the database cannot be read: {caught}")
            # A caller may handle its own failure; a broken store concerns the whole gateway.
            self._on_broken(error)
            raise error from caught
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def end(self) -> None:
        """Its transaction is over before the caller is answered."""

    def close(self) -> None:
        self._connection.close()
