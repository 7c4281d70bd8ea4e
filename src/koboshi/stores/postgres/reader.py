"""Threads that read, each on a connection of its own. A look sees one moment, and is repeated on
the next connection if its connection is lost."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any

from anyio import CancelScope

from koboshi.domain.errors import StoreFailed
from koboshi.kernel.transaction import Look, Outcome
from koboshi.stores.postgres.batches import PAUSES_SECONDS, ROUND_SECONDS_MAX
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

READER_COUNT = 2
_BEGIN = WireRequest("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NOTHING)


@dataclass(slots=True, eq=False)
class _Asked:
    look: Look[Any]
    future: "asyncio.Future[Any]"


class PostgresReaders:
    def __init__(
        self, connect: Callable[[], Wire], time: StoreTime, impatient: threading.Event
    ) -> None:
        """`impatient` is set when no look may wait for the server any more."""
        self._connect = connect
        self._time = time
        self._impatient = impatient
        self._queue: SimpleQueue[_Asked | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, name="koboshi-reader", daemon=True)
            for _ in range(READER_COUNT)
        ]
        for thread in self._threads:
            thread.start()

    async def read(self, look: Look[Outcome]) -> Outcome:
        """What `look` sees."""
        if self._is_closed:
            raise RuntimeError("the store is closed")
        asked = _Asked(look, self._loop.create_future())
        self._queue.put(asked)
        result: Outcome = await asked.future
        return result

    async def close(self) -> None:
        self._is_closed = True
        for _ in self._threads:
            self._queue.put(None)
        with CancelScope(shield=True):
            for thread in self._threads:
                await self._loop.run_in_executor(None, thread.join)

    def _work(self) -> None:
        looking = _Looking(self._connect, self._time, self._impatient)
        while (asked := self._queue.get()) is not None:
            result: object = None
            error: Exception | None = None
            try:
                result = looking.look(asked.look)
            except Exception as caught:  # it belongs to the one who asked
                error = caught
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(_answer, asked.future, result, error)
            looking.end()
        looking.close()


class _Looking:
    """The connection of one thread."""

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


def _answer(future: "asyncio.Future[Any]", result: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
