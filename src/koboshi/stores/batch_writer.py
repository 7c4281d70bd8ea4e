"""The thread that writes, and how many callers share one commit: what all stores have in common.

What was submitted while a commit ran becomes the next batch: no timer, no delay, a batch of one
when it is quiet. A caller is answered once, after the commit that carries its operation or with the
error that ended it. A cancelled caller waits for its commit: cancelling withdraws nothing.
"""

import asyncio
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from anyio import CancelScope, current_effective_deadline

from koboshi.domain.errors import StoreFailed
from koboshi.domain.timing import Timing
from koboshi.kernel.transaction import NO_KEYS, Keys, Operation, Outcome
from koboshi.ports.clock import Clock
from koboshi.ports.wakeups import Wakeups


@dataclass(slots=True, eq=False)
class Submitted:
    """An operation that a caller waits for."""

    verb: str
    operation: Operation[Any]
    keys: Keys = NO_KEYS
    future: "asyncio.Future[Any] | None" = None
    """None where no caller waits."""
    is_answered: bool = False
    """Whether the loop has told the outcome, though the caller may have stopped listening."""
    found: set[int] | None = None
    """Keys that an earlier run has found, if there are any."""
    result: object = None
    error: BaseException | None = None
    hints: AbstractSet[str] = frozenset()


class BatchWriter(ABC):
    """Runs submitted operations in order, as few transactions as possible. The class of a store
    starts the thread when it is ready."""

    def __init__(
        self,
        *,
        clock: Clock,
        wakeups: Wakeups,
        batch_max: int,
        on_failure: Callable[[StoreFailed], None],
        impatient: threading.Event | None = None,
    ) -> None:
        """`impatient` is set when no write may wait for a disk, a lock or a server any more."""
        self._clock = clock
        self._wakeups = wakeups
        self._batch_max = batch_max
        self._on_failure = on_failure
        self._queue: SimpleQueue[Submitted | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._impatient = impatient or threading.Event()
        self._is_closed = False
        self._failure: StoreFailed | None = None
        self._loop = asyncio.get_running_loop()
        self.commit_times = Timing()
        self._thread = threading.Thread(target=self._work, name="koboshi-writer", daemon=True)

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
        try:
            return await future
        except asyncio.CancelledError:
            if current_effective_deadline() != -math.inf:
                raise  # no scope was cancelled: the task is torn down from outside
        result: Outcome = await self._wait_on(submitted)
        return result

    async def _wait_on(self, submitted: Submitted) -> Any:
        """A scope was cancelled around the caller, who waits for the commit all the same and hears
        of it at its next checkpoint. A shield is set up only now: for every write it would cost a
        tenth of a turn."""
        if not submitted.is_answered:
            submitted.future = self._loop.create_future()
            with CancelScope(shield=True):
                return await submitted.future
        if submitted.error is not None:
            raise submitted.error
        return submitted.result

    @property
    def failure(self) -> str | None:
        """Why nothing is written any more; None while there is no reason."""
        return None if self._failure is None else str(self._failure)

    def give_up(self, failure: StoreFailed) -> None:
        """Refuse every write from now on: the store cannot be trusted, and this process must end.
        What was submitted before is still carried out, and its caller told the truth."""
        with self._gate:
            is_news = self._failure is None
            self._failure = self._failure or failure
        if is_news:
            self._on_failure(failure)

    def stop_waiting(self) -> None:
        """From now on a write that would have to wait fails instead."""
        self._impatient.set()

    async def close(self) -> None:
        """Finish what was submitted, then end the thread and close the connection."""
        self.stop_waiting()
        with self._gate:
            self._is_closed = True
            self._queue.put(None)
        with CancelScope(shield=True):
            await self._loop.run_in_executor(None, self._thread.join)

    @abstractmethod
    def _commit_batch(self, batch: list[Submitted], *, is_last: bool) -> set[str]:
        """Commit the batch, which may be empty; each operation has its result or its error then.
        Returns the topics to wake. What it raises is a commit of unknown outcome."""

    @abstractmethod
    def _end(self, *, has_failed: bool) -> None:
        """The thread ends."""

    def _look_again_seconds(self) -> float | None:
        """After how long a batch is asked for, though nothing was submitted."""
        return None

    def _in_words(self, error: BaseException) -> str:
        return f"{type(error).__name__}: {error}"

    def _work(self) -> None:
        is_last = has_failed = False
        while not is_last and not has_failed:
            batch, is_last = self._take_batch()
            try:
                hints = self._commit_batch(batch, is_last=is_last)
            except BaseException as error:  # the thread must not die with waiters left behind
                self._poison(error, batch)
                has_failed = True
            else:
                self._answer(batch, hints)
        self._end(has_failed=has_failed)

    def _take_batch(self) -> tuple[list[Submitted], bool]:
        """All that is there, at least one; and whether the queue was closed."""
        batch: list[Submitted] = []
        try:
            submitted = self._queue.get(timeout=self._look_again_seconds())
            while submitted is not None:
                batch.append(submitted)
                if len(batch) >= self._batch_max:
                    return batch, False
                submitted = self._queue.get_nowait()
        except Empty:
            return batch, False
        return batch, True

    def _answer(self, batch: list[Submitted], hints: set[str]) -> None:
        if batch and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer_in_loop, batch, hints)

    def _answer_in_loop(self, batch: list[Submitted], hints: set[str]) -> None:
        for submitted in batch:
            submitted.is_answered = True
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
            failure = StoreFailed(f"the database failed: {self._in_words(error)}")
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
