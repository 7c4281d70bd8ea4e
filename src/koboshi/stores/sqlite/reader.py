"""Threads that read, each on a connection of its own that never writes or checkpoints."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import apsw
from anyio import CancelScope

from koboshi.domain.errors import StoreFailed
from koboshi.kernel.transaction import Look, Outcome
from koboshi.ports.clock import Clock
from koboshi.stores.sqlite.file import BROKEN
from koboshi.stores.sqlite.transaction import SqliteReading


@dataclass(slots=True, eq=False)
class _Asked:
    look: Look[Any]
    future: "asyncio.Future[Any]"


class SqliteReaders:
    """Looks are short and each sees one moment; a long one would keep the log from shrinking."""

    def __init__(
        self,
        connections: list[apsw.Connection],
        clock: Clock,
        *,
        on_broken: Callable[[StoreFailed], None],
    ) -> None:
        """`on_broken` is told, in a thread of ours, when the file cannot be read any more."""
        self._clock = clock
        self._on_broken = on_broken
        self._queue: SimpleQueue[_Asked | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._threads = [
            threading.Thread(
                target=self._work, args=(connection,), name="koboshi-reader", daemon=True
            )
            for connection in connections
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

    def _work(self, connection: apsw.Connection) -> None:
        reading = SqliteReading(connection)
        while (asked := self._queue.get()) is not None:
            result: object = None
            error: Exception | None = None
            try:
                connection.execute("BEGIN")
                reading.now_ms = self._clock.now_ms()
                result = asked.look(reading)
            except BROKEN as caught:
                error = StoreFailed(f"the database cannot be read: {caught}")
                error.__cause__ = caught
                # A caller may handle its own failure; a broken store concerns the whole gateway.
                self._on_broken(error)
            except Exception as caught:  # it belongs to the one who asked
                error = caught
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(_answer, asked.future, result, error)
        connection.close()


def _answer(future: "asyncio.Future[Any]", result: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
