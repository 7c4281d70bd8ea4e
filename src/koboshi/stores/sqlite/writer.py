"""The one thread that writes, and how many callers share one commit.

Theory of operation. Every submitted operation is at each moment in exactly one of four places: in
the queue, in the batch of the open transaction, held back for want of room, or answered. It is
answered once, after the commit that carries it or with the error that ended it, so a caller that
has its result has a durable one. There is one thread and one connection: operations never run side
by side, and the order of the commits is the order of submission, but for what was held back.

Whatever was submitted while a commit ran becomes the next transaction: no timer, no delay, a batch
of one when it is quiet. If an operation fails, the batch is run again with a savepoint for each, so
that the failure is that caller's alone. So an operation may run more than once before it is
committed, and does nothing but read and write the database. A cancelled caller waits for its
commit: cancelling withdraws nothing.

A full disk, or another program's lock, rolls the batch back and it is tried again: nothing was
acknowledged. On a full disk the reserve is given up (`room.py`): people are told, what is in flight
goes on, and what would begin something waits. Any other failure of the file is a commit of unknown
outcome: every waiter gets `StoreFailed`, and so does every later caller.

At every commit the names of the open files are looked at. Before it, while the transaction holds
SQLite's own lock, that of the home's lock: of two processes on one database, the one that took the
home last has all later commits. After it, before any caller is answered, those of the database:
what was committed to a file without a name is not acknowledged.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

import apsw
from anyio import CancelScope

from koboshi.domain.errors import Fenced, StoreFailed
from koboshi.domain.timing import Timing
from koboshi.kernel.clocks import JumpWatch
from koboshi.kernel.transaction import NO_KEYS, Keys, Operation, Outcome, Transaction
from koboshi.ports.clock import Clock
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.faults import CrashPoint
from koboshi.stores.sqlite.open_files import NO_FILES, HomeGone, OpenFiles
from koboshi.stores.sqlite.room import NEW_WORK, DiskSpace
from koboshi.stores.sqlite.transaction import SqliteTransaction

RETRY_SECONDS = 0.5
FULL = "the disk is full"

_PATIENT = (apsw.FullError, apsw.BusyError, apsw.LockedError)
"""Nothing was written and nothing is broken: wait and try again."""

_FATAL = (
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.NoMemError,
    apsw.InterruptError,
    apsw.ProtocolError,
)


@dataclass(slots=True, eq=False)
class _Submitted:
    verb: str
    operation: Operation[Any]
    future: "asyncio.Future[Any] | None"
    """None where no caller waits."""
    result: object = None
    error: BaseException | None = None


class SqliteWriter:
    """Runs submitted operations in order, as few transactions as possible."""

    def __init__(
        self,
        connection: apsw.Connection,
        *,
        clock: Clock,
        wakeups: Wakeups,
        crash_point: CrashPoint,
        batch_max: int,
        on_failure: Callable[[StoreFailed], None],
        on_trouble: Callable[[str], None],
        files: OpenFiles = NO_FILES,
        room: DiskSpace | None = None,
        on_full: Operation[None] | None = None,
    ) -> None:
        self._connection = connection
        self._control = connection.cursor()
        self._clock = clock
        self._jumps = JumpWatch(clock)
        self._wakeups = wakeups
        self._crash_point = crash_point
        self._batch_max = batch_max
        self._on_failure = on_failure
        self._on_trouble = on_trouble
        self._files = files
        self._room = room
        self._on_full = on_full
        self._held_back: list[_Submitted] = []
        """What waits for room, in the order in which it came."""
        self._queue: SimpleQueue[_Submitted | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._impatient = threading.Event()
        self._is_closed = False
        self._failure: StoreFailed | None = None
        self._loop = asyncio.get_running_loop()
        self.trouble: str | None = None
        if room is not None and room.is_short:
            self.trouble = FULL
            on_trouble(FULL)
        self.commits = 0
        self.commit_times = Timing()
        self.refusals = {"full": 0, "busy": 0}
        """How often a disk or a lock made us try again."""
        self.fenced = 0
        """Writes without a claim that holds."""
        self._thread = threading.Thread(target=self._work, name="koboshi-writer", daemon=True)
        self._thread.start()

    async def write(
        self,
        verb: str,
        operation: Operation[Outcome],
        keys: Keys = NO_KEYS,  # noqa: ARG002  (one thread writes: no other has to be kept out)
    ) -> Outcome:
        """Carry out `operation` and return its result once it is durable.

        Cancelling the caller does not withdraw the operation: the caller waits for its commit.
        """
        future: asyncio.Future[Outcome] = self._loop.create_future()
        submitted = _Submitted(verb, operation, future)
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
    def reserve_bytes(self) -> int:
        """What is kept back for a full disk."""
        return 0 if self._room is None else self._room.reserve_bytes

    @property
    def failure(self) -> str | None:
        """Why nothing is written any more; None while there is no reason."""
        return None if self._failure is None else str(self._failure)

    def give_up(self, failure: StoreFailed) -> None:
        """Refuse every write from now on: the file cannot be trusted, and this process must end.
        What was submitted before is still carried out, and its caller told the truth."""
        with self._gate:
            is_news = self._failure is None
            self._failure = self._failure or failure
        if is_news:
            self._on_failure(failure)

    def stop_waiting(self) -> None:
        """From now on a write that would have to wait for a disk or a lock fails instead."""
        self._impatient.set()

    async def close(self) -> None:
        """Finish what was submitted, then end the thread and close the connection."""
        self.stop_waiting()
        with self._gate:
            self._is_closed = True
            self._queue.put(None)
        with CancelScope(shield=True):
            await self._loop.run_in_executor(None, self._thread.join)

    def _work(self) -> None:
        transaction = SqliteTransaction(self._connection)
        is_last = False
        while not is_last:
            batch, is_last = self._take_batch()
            try:
                self._look_for_room(batch, is_last=is_last)
                self._commit_patiently(transaction, batch)
            except BaseException as error:  # the thread must not die with waiters left behind
                self._poison(error, batch)
                return
            if batch:
                self._answer(batch, transaction.hints)
                transaction.hints = set()
        with suppress(HomeGone):
            self._check(self._files.check)
        self._connection.close()

    def _take_batch(self) -> tuple[list[_Submitted], bool]:
        """All that is there, at least one; and whether the queue was closed."""
        batch: list[_Submitted] = []
        try:
            is_short = self._room is not None and self._room.is_short
            submitted = self._queue.get(timeout=RETRY_SECONDS if is_short else None)
            while submitted is not None:
                batch.append(submitted)
                if len(batch) >= self._batch_max:
                    return batch, False
                submitted = self._queue.get_nowait()
        except Empty:
            return batch, False
        return batch, True

    def _look_for_room(self, batch: list[_Submitted], *, is_last: bool) -> None:
        """On a full disk take out of the batch what begins something, and bring it back when there
        is room. Who is asked to stop cannot wait for that."""
        room = self._room
        if room is None or not (room.is_short or self._held_back):
            return
        room.look()
        if room.is_short:
            self._hold_back(batch)
            if is_last or self._impatient.is_set():
                held_back, self._held_back = self._held_back, []
                for submitted in held_back:
                    submitted.error = StoreFailed(f"the database failed: {FULL}")
                self._answer(held_back, set())
            return
        self.trouble = None
        batch[:0], self._held_back = self._held_back, []

    def _hold_back(self, batch: list[_Submitted]) -> None:
        self._held_back += [each for each in batch if each.verb in NEW_WORK]
        batch[:] = [each for each in batch if each.verb not in NEW_WORK]

    def _use_reserve(self, batch: list[_Submitted]) -> bool:
        """The disk is full. Returns whether the reserve was given up just now, so that what is in
        flight can be tried again at once, and its callers are told."""
        if self._room is None or not self._room.ran_out():
            return False
        self._hold_back(batch)
        if self._on_full is not None:
            batch.insert(0, _Submitted("workers.tell_full", self._on_full, None))
        return True

    def _commit_patiently(self, transaction: SqliteTransaction, batch: list[_Submitted]) -> None:
        while batch:
            try:
                self._commit(transaction, batch)
            except _PATIENT as error:
                self._roll_back()
                self._check(self._files.check)
                transaction.hints = set()
                self.refusals["full" if isinstance(error, apsw.FullError) else "busy"] += 1
                if self.trouble is None:
                    self._on_trouble(_in_words(error))
                self.trouble = _in_words(error)
                if isinstance(error, apsw.FullError) and self._use_reserve(batch):
                    continue
                if self._impatient.wait(RETRY_SECONDS):
                    raise
                continue
            is_short = self._room is not None and self._room.is_short
            self.trouble = FULL if is_short else None
            return

    def _commit(self, transaction: SqliteTransaction, batch: list[_Submitted]) -> None:
        execute = self._control.execute
        began = self._clock.monotonic()
        execute("BEGIN IMMEDIATE")
        self._jumps.begin(transaction)
        if not self._carry_out_together(transaction, batch):
            # One operation failed, which is rare: once more, each under a savepoint of its own, so
            # that the failure is that caller's alone.
            execute("ROLLBACK")
            transaction.hints = set()
            execute("BEGIN IMMEDIATE")
            self._jumps.begin(transaction)
            for submitted in batch:
                self._carry_out_alone(transaction, submitted)
        self._check(self._files.check_lock)
        execute("COMMIT")
        self._jumps.committed()
        self._check(self._files.check_database)
        self.commits += 1
        if self._room is not None:
            self._room.committed()
        self.commit_times.note(self._clock.monotonic() - began)
        if self._crash_point.is_armed:
            for submitted in batch:
                if submitted.error is None:
                    self._crash_point.reach(submitted.verb, "after")

    def _carry_out_together(self, transaction: Transaction, batch: list[_Submitted]) -> bool:
        """Run all operations, hoping that none fails. Returns whether that came true."""
        for submitted in batch:
            if self._crash_point.is_armed:
                self._crash_point.reach(submitted.verb, "before")
            try:
                submitted.result = submitted.operation(transaction)
                submitted.error = None
            except (*_PATIENT, *_FATAL):
                raise
            except Exception:  # found again, and given to its caller, when it runs alone
                return False
        return True

    def _carry_out_alone(self, transaction: Transaction, submitted: _Submitted) -> None:
        execute = self._control.execute
        execute("SAVEPOINT operation")
        try:
            submitted.result = submitted.operation(transaction)
            submitted.error = None
        except (*_PATIENT, *_FATAL):
            raise
        except Exception as error:  # it belongs to its caller
            submitted.error = error
            self.fenced += isinstance(error, Fenced)
            execute("ROLLBACK TO operation")
        execute("RELEASE operation")

    def _check(self, look: Callable[[], None]) -> None:
        """Raises HomeGone where a file has gone. Then the transaction that is open is undone, so
        that it holds up no other process; and the log is not removed when the connection is closed,
        because that is done by its name, which may mean a file of others by now."""
        try:
            look()
        except HomeGone:
            self._roll_back()
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            raise

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._control.execute("ROLLBACK")

    def _answer(self, batch: list[_Submitted], hints: set[str]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer_in_loop, batch, hints)

    def _answer_in_loop(self, batch: list[_Submitted], hints: set[str]) -> None:
        for submitted in batch:
            if submitted.future is None or submitted.future.done():
                continue
            if submitted.error is None:
                submitted.future.set_result(submitted.result)
            else:
                submitted.future.set_exception(submitted.error)
        for topic in hints:
            self._wakeups.hint(topic)

    def _poison(self, error: BaseException, batch: list[_Submitted]) -> None:
        """No caller may wait for a commit whose outcome is unknown, now or later."""
        if isinstance(error, HomeGone):
            failure: StoreFailed = error
        else:
            failure = StoreFailed(f"the database failed: {_in_words(error)}")
            failure.__cause__ = error
        batch += self._held_back
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


def _in_words(error: BaseException) -> str:
    if isinstance(error, apsw.FullError):
        return FULL
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return "another program holds the database"
    return f"{type(error).__name__}: {error}"
