"""Threads that read, each on a connection of its own that never writes."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

from anyio import CancelScope

from koboshi.kernel.transaction import Look, Outcome


class LookingConnection(Protocol):
    """The connection of one thread."""

    def look(self, look: Look[Outcome]) -> Outcome:
        """What it sees, all of one moment."""

    def end(self) -> None:
        """End the transaction of the look."""

    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Asked:
    look: Look[Any]
    future: "asyncio.Future[Any]"


class ReaderThreads:
    def __init__(self, connections: Sequence[Callable[[], LookingConnection]]) -> None:
        """Each is made in the thread that uses it."""
        self._queue: SimpleQueue[_Asked | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, args=(make,), name="koboshi-reader", daemon=True)
            for make in connections
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

    def _work(self, make: Callable[[], LookingConnection]) -> None:
        connection = make()
        while (asked := self._queue.get()) is not None:
            result: object = None
            error: Exception | None = None
            try:
                result = connection.look(asked.look)
            except Exception as caught:  # it belongs to the one who asked
                error = caught
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(_answer, asked.future, result, error)
            connection.end()
        connection.close()


def _answer(future: "asyncio.Future[Any]", result: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
