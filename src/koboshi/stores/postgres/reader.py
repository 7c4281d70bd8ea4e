"""Connections that read. A look sees one moment, and is repeated on the next connection if its
connection is lost."""

import threading
from collections.abc import Callable
from functools import partial

from koboshi.domain.errors import StoreFailed
from koboshi.kernel.transaction import Look, Outcome
from koboshi.stores.postgres.batches import PAUSES_SECONDS
from koboshi.stores.postgres.reach import ROUND_SECONDS_MAX
from koboshi.stores.postgres.times import StoreTime
from koboshi.stores.postgres.transaction import PostgresReading
from koboshi.stores.postgres.wire import (
    COMMIT,
    NOTHING,
    Lost,
    ServerError,
    Wire,
    WireAnswer,
    WireRequest,
)
from koboshi.stores.reader_threads import ReaderThreads

READER_COUNT = 2
_BEGIN = WireRequest("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NOTHING)


class PostgresReaders(ReaderThreads):
    def __init__(
        self, connect: Callable[[], Wire], time: StoreTime, impatient: threading.Event
    ) -> None:
        """`impatient` is set when no look may wait for the server any more."""
        super().__init__([partial(_Looking, connect, time, impatient)] * READER_COUNT)


class _Looking:
    def __init__(
        self, connect: Callable[[], Wire], time: StoreTime, impatient: threading.Event
    ) -> None:
        self._connect = connect
        self._time = time
        self._impatient = impatient
        self._wire: Wire | None = None
        self._has_begun = False

    def look(self, look: Look[Outcome]) -> Outcome:
        """What it sees, on a connection that lasts until its end."""
        tries = 0
        while True:
            try:
                self._wire = self._wire or self._connect()
                return look(PostgresReading(partial(self._ask, self._wire), self._time.now_ms()))
            except Lost as lost:
                self.close()
                if self._impatient.wait(PAUSES_SECONDS[min(tries, len(PAUSES_SECONDS) - 1)]):
                    raise StoreFailed(f"the database cannot be read: {lost}") from lost
                tries += 1

    def _ask(self, wire: Wire, request: WireRequest) -> WireAnswer:
        first = () if self._has_begun else (_BEGIN,)
        self._has_begun = True
        return wire.round((*first, request), within_s=ROUND_SECONDS_MAX)[-1]

    def end(self) -> None:
        """End the transaction of the look, once its caller has been answered."""
        if self._wire is None or not self._has_begun:
            return
        self._has_begun = False
        try:
            self._wire.round([COMMIT], within_s=ROUND_SECONDS_MAX)
        except (Lost, ServerError):
            self.close()

    def close(self) -> None:
        self._has_begun = False
        if self._wire is not None:
            self._wire.close()
            self._wire = None
