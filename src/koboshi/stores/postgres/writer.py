"""The one thread of a node that writes: callers wait for the commit that carries their operation.

What was submitted while a commit ran becomes the next batch: no timer, no delay, a batch of one
when it is quiet. A caller is answered once, after its commit or with the error that ended it. A
cancelled caller waits for its commit: cancelling withdraws nothing.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from anyio import CancelScope

from koboshi.domain.errors import StoreFailed
from koboshi.domain.timing import Timing
from koboshi.kernel.transaction import NO_KEYS, Keys, Operation, Outcome
from koboshi.ports.clock import Clock
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.postgres.batches import Batches
from koboshi.stores.postgres.rounds import Submitted


class PostgresWriter:
    def __init__(
        self,
        batches: Batches,
        *,
        clock: Clock,
        wakeups: Wakeups,
        batch_max: int,
        on_failure: Callable[[StoreFailed], None],
    ) -> None:
        self._batches = batches
        self._clock = clock
        self._wakeups = wakeups
        self._batch_max = batch_max
        self._on_failure = on_failure
        self._queue: SimpleQueue[Submitted | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._is_closed = False
        self._failure: StoreFailed | None = None
        self._loop = asyncio.get_running_loop()
        self.commit_times = Timing()
        self._thread = threading.Thread(target=self._work, name="koboshi-writer", daemon=True)
        self._thread.start()

    async def write(
        self, verb: str, operation: Operation[Outcome], keys: Keys = NO_KEYS
    ) -> Outcome:
        """Carry out `operation` and return its result once it is durable.

        Cancelling the caller does not withdraw the operation: the caller waits for its commit.
        """
        future: asyncio.Future[Outcome] = self._loop.create_future()
        submitted = Submitted(verb, operation, keys, future)
        with self._gate:
            if self._failure is not None:
                raise self._failure
            if self._is_closed:
                raise RuntimeError("the store is closed")
            self._queue.put(submitted)
        with CancelScope(shield=True):
            result: Outcome = await future
        return result

    @property
    def failure(self) -> str | None:
        """Why nothing is written any more; None while there is no reason."""
        return None if self._failure is None else str(self._failure)

    def give_up(self, failure: StoreFailed) -> None:
        """Refuse every write from now on: this process must end. What was submitted before is
        still carried out, and its caller told the truth."""
        with self._gate:
            is_news = self._failure is None
            self._failure = self._failure or failure
        if is_news:
            self._on_failure(failure)

    def stop_waiting(self) -> None:
        """From now on a write that would have to wait for the server fails instead."""
        self._batches.impatient.set()

    async def close(self) -> None:
        """Finish what was submitted, then end the thread and close the connection."""
        self.stop_waiting()
        with self._gate:
            self._is_closed = True
            self._queue.put(None)
        with CancelScope(shield=True):
            await self._loop.run_in_executor(None, self._thread.join)

    def _work(self) -> None:
        is_last = False
        while not is_last:
            batch, is_last = self._take_batch()
            if not batch:
                continue
            begun = self._clock.monotonic()
            try:
                self._batches.commit(batch)
            except BaseException as error:  # the thread must not die with waiters left behind
                self._poison(error, batch)
                break
            self.commit_times.note(self._clock.monotonic() - begun)
            self._answer(batch, self._batches.clock_hints)
        self._batches.close()

    def _take_batch(self) -> tuple[list[Submitted], bool]:
        """All that is there, at least one; and whether the queue was closed."""
        batch: list[Submitted] = []
        submitted = self._queue.get()
        try:
            while submitted is not None:
                batch.append(submitted)
                if len(batch) >= self._batch_max:
                    return batch, False
                submitted = self._queue.get_nowait()
        except Empty:
            return batch, False
        return batch, True

    def _answer(self, batch: list[Submitted], more: set[str]) -> None:
        hints = set(more)
        for submitted in batch:
            if submitted.error is None:
                hints |= submitted.hints
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer_in_loop, batch, hints)

    def _answer_in_loop(self, batch: list[Submitted], hints: set[str]) -> None:
        for submitted in batch:
            if submitted.future is None or submitted.future.done():
                continue
            if submitted.error is None:
                submitted.future.set_result(submitted.result)
            else:
                submitted.future.set_exception(submitted.error)
        for topic in hints:
            self._wakeups.hint(topic)

    def _poison(self, error: BaseException, batch: list[Submitted]) -> None:
        """No caller may wait for a commit whose outcome is unknown, now or later."""
        if isinstance(error, StoreFailed):
            failure = error
        else:
            failure = StoreFailed(f"the database failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
        with self._gate:
            is_news = self._failure is None
            self._failure = self._failure or failure
            try:
                while True:
                    left = self._queue.get_nowait()
                    if left is not None:
                        batch.append(left)
            except Empty:
                pass
        for submitted in batch:
            submitted.error = failure
        # Reported first: a caller may end the process as soon as it has its answer.
        try:
            if is_news:
                self._on_failure(failure)
        finally:
            self._answer(batch, set())
