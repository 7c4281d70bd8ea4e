"""One thread writes to the file (`stores/batch_writer.py`), and looks after file, disk and lock.

Theory of operation. Every submitted operation is at each moment in exactly one of four places: in
the queue, in the batch of the open transaction, held back for lack of room, or answered. It is
answered once, after the commit that carries it or with the error that ended it, so a caller that
has its result has a durable one. There is one thread and one connection: operations never run side
by side, and the order of the commits is the order of submission, but for what was held back.

If an operation fails, the batch is run again with a savepoint for each, so that the failure is that
caller's alone. So an operation may run more than once before it is committed, and does nothing but
read and write the database.

A full disk, or another program's lock, rolls the batch back and it is tried again: nothing was
acknowledged. On a full disk the reserve is given up (`room.py`): people are told, what is in flight
goes on, and what would begin something waits. Any other failure of the file is a commit of unknown
outcome: every waiter gets `StoreFailed`, and so does every later caller.

At every commit the names of the open files are looked at. Before it, while the transaction holds
SQLite's own lock, that of the home's lock: of two processes on one database, the one that took the
home last has all later commits. After it, before any caller is answered, those of the database:
what was committed to a file without a name is not acknowledged.
"""

from collections.abc import Callable
from contextlib import suppress

import apsw

from koboshi.domain.errors import Fenced, StoreFailed
from koboshi.kernel.clocks import JumpWatch
from koboshi.kernel.transaction import Operation, Transaction
from koboshi.ports.clock import Clock
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.batch_writer import BatchWriter, Submitted
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


class SqliteWriter(BatchWriter):
    """One transaction at a time, on one connection."""

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
        super().__init__(clock=clock, wakeups=wakeups, batch_max=batch_max, on_failure=on_failure)
        self._connection = connection
        self._control = connection.cursor()
        self._transaction = SqliteTransaction(connection)
        self._jumps = JumpWatch(clock)
        self._crash_point = crash_point
        self._on_trouble = on_trouble
        self._files = files
        self._room = room
        self._on_full = on_full
        self._held_back: list[Submitted] = []
        """What waits for room, in the order in which it came."""
        self.trouble: str | None = None
        if room is not None and room.is_short:
            self.trouble = FULL
            on_trouble(FULL)
        self.commits = 0
        self.refusals = {"full": 0, "busy": 0}
        """How often a disk or a lock made us try again."""
        self.fenced = 0
        """Writes without a claim that holds."""
        self._thread.start()

    @property
    def reserve_bytes(self) -> int:
        """What is kept back for a full disk."""
        return 0 if self._room is None else self._room.reserve_bytes

    def _look_again_seconds(self) -> float | None:
        return RETRY_SECONDS if self._is_short() else None

    def _commit_batch(self, batch: list[Submitted], *, is_last: bool) -> set[str]:
        self._look_for_room(batch, is_last=is_last)
        self._commit_patiently(self._transaction, batch)
        hints, self._transaction.hints = self._transaction.hints, set()
        return hints

    def _end(self, *, has_failed: bool) -> None:
        if has_failed:
            return
        with suppress(HomeGone):
            self._check(self._files.check)
        self._connection.close()

    def _is_short(self) -> bool:
        return self._room is not None and self._room.is_short

    def _look_for_room(self, batch: list[Submitted], *, is_last: bool) -> None:
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

    def _hold_back(self, batch: list[Submitted]) -> None:
        self._held_back += [each for each in batch if each.verb in NEW_WORK]
        batch[:] = [each for each in batch if each.verb not in NEW_WORK]

    def _use_reserve(self, batch: list[Submitted]) -> bool:
        """The disk is full. Returns whether the reserve was given up just now, so that what is in
        flight can be tried again at once, and its callers are told."""
        if self._room is None or not self._room.ran_out():
            return False
        self._hold_back(batch)
        if self._on_full is not None:
            batch.insert(0, Submitted("workers.tell_full", self._on_full))
        return True

    def _commit_patiently(self, transaction: SqliteTransaction, batch: list[Submitted]) -> None:
        while batch:
            try:
                self._commit(transaction, batch)
            except _PATIENT as error:
                self._roll_back()
                self._check(self._files.check)
                transaction.hints = set()
                self.refusals["full" if isinstance(error, apsw.FullError) else "busy"] += 1
                if self.trouble is None:
                    self._on_trouble(self._in_words(error))
                self.trouble = self._in_words(error)
                if isinstance(error, apsw.FullError) and self._use_reserve(batch):
                    continue
                if self._impatient.wait(RETRY_SECONDS):
                    raise
                continue
            self.trouble = FULL if self._is_short() else None
            return

    def _commit(self, transaction: SqliteTransaction, batch: list[Submitted]) -> None:
        execute = self._control.execute
        began = self._clock.monotonic()
        execute("BEGIN IMMEDIATE")
        transaction.forget()
        self._jumps.begin(transaction)
        if not self._carry_out_together(transaction, batch):
            # One operation failed, which is rare: once more, each under a savepoint of its own, so
            # that the failure is that caller's alone.
            execute("ROLLBACK")
            transaction.hints = set()
            execute("BEGIN IMMEDIATE")
            transaction.forget()
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

    def _carry_out_together(self, transaction: Transaction, batch: list[Submitted]) -> bool:
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

    def _carry_out_alone(self, transaction: SqliteTransaction, submitted: Submitted) -> None:
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
            transaction.forget()
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

    def _poison(self, error: BaseException, batch: list[Submitted]) -> None:
        super()._poison(error, batch + self._held_back)

    def _in_words(self, error: BaseException) -> str:
        if isinstance(error, apsw.FullError):
            return FULL
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return "another program holds the database"
        return super()._in_words(error)
