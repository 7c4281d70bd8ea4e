"""A listening end that leaves nothing behind, and a loop in a thread to serve it in."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from tests.fakes.telegram.wire import Answered, Connection, HttpRequest
from tests.harness.polling import WITHIN_S

TURNS_OF_AN_ACCEPT = 5
"""A connection that the loop took over just before the end is made in so many turns of it."""


class Listener:
    """A port of the loopback. It may be opened again after it was closed, and keeps its number."""

    def __init__(self, answer: Callable[[HttpRequest, Connection], Answered]) -> None:
        self.port = 0
        self._answer = answer
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def open(self, port: int = 0) -> None:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._answer, self._connections, self._tasks),
            "127.0.0.1",
            port or self.port,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Every connection ends, also one that was accepted in this moment and is not made yet."""
        assert self._server is not None
        self._server.close()
        await settle()
        self.drop_connections()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await settle()
        await self._server.wait_closed()

    def drop_connections(self) -> None:
        """Every connection ends without an answer."""
        for connection in list(self._connections):
            connection.drop()


async def settle() -> None:
    for _ in range(TURNS_OF_AN_ACCEPT):
        await asyncio.sleep(0)


async def end_others() -> None:
    """Nothing else runs in this loop from here on, so that it can be closed."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in others:
            task.cancel()
        await asyncio.wait(others)
    await settle()


@contextmanager
def served_in_thread(
    start: Callable[[], Awaitable[None]], stop: Callable[[], Awaitable[None]]
) -> Iterator[asyncio.AbstractEventLoop]:
    """A platform in a thread of its own: for tests that block their loop, or have none."""
    is_ready = threading.Event()
    loop = asyncio.new_event_loop()
    is_over = asyncio.Event()

    async def serve() -> None:
        await start()
        is_ready.set()
        await is_over.wait()
        await stop()
        await settle()
        await end_others()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert is_ready.wait(timeout=WITHIN_S), "the fake platform did not start"
        yield loop
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join()
        loop.close()
