"""The real store on a real file, without threads and without waiting: a verb is committed when it
is asked for, and a look sees the file as it is. For the one who carries out thousands of verbs one
after the other, and has no use for an event loop."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import apsw

from koboshi.domain.errors import StoreFailed
from koboshi.domain.recovery import BootConfig
from koboshi.kernel.clocks import JumpWatch
from koboshi.kernel.context import VerbContext
from koboshi.kernel.transaction import NO_KEYS, Keys, Reading, Transaction
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.faults import CrashPoint
from koboshi.stores.lock import HomeLock, take_lock
from koboshi.stores.sqlite.backups import SqliteBackups
from koboshi.stores.sqlite.file import DATABASE_NAME, open_reader, open_writer
from koboshi.stores.sqlite.reader import SqliteReaders
from koboshi.stores.sqlite.store import SqliteStore
from koboshi.stores.sqlite.transaction import SqliteReading
from koboshi.stores.sqlite.writer import SqliteWriter
from tests.harness.backends import Limits, nth_code, run_sql
from tests.harness.named_keys import CheckedTransaction, checked
from tests.harness.rows import Rows, glance

Outcome = TypeVar("Outcome")


def done(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """What comes of work that never has to wait."""
    try:
        work.send(None)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    raise AssertionError("it waits for something")


class DirectWriter(SqliteWriter):
    """One transaction for each verb, in the place of the thread that shares them."""

    def __init__(self, connection: apsw.Connection, clock: Clock, wakeups: Wakeups) -> None:
        self.connection = connection
        self.transaction = CheckedTransaction(connection)
        self.clock = clock
        self.jumps = JumpWatch(clock)
        self.wakeups = wakeups
        self.trouble = None
        self.commits = 0

    async def write(
        self,
        verb: str,
        operation: Callable[[Transaction], Outcome],
        keys: Keys = NO_KEYS,
    ) -> Outcome:
        self.connection.execute("BEGIN IMMEDIATE")
        self.transaction.forget()
        self.jumps.begin(self.transaction)
        try:
            outcome = checked(verb, operation, keys)(self.transaction)
        except BaseException:
            self.connection.execute("ROLLBACK")
            self.transaction.hints = set()
            raise
        self.connection.execute("COMMIT")
        self.jumps.committed()
        self.commits += 1
        hints, self.transaction.hints = self.transaction.hints, set()
        for topic in sorted(hints):
            self.wakeups.hint(topic)
        return outcome

    def stop_waiting(self) -> None:
        """Nothing here waits for a disk."""

    async def close(self) -> None:
        """What is in the log stays there, as after a kill."""
        close_as_it_is(self.connection)


class DirectReaders(SqliteReaders):
    def __init__(self, connection: apsw.Connection, clock: Clock) -> None:
        self.connection = connection
        self.reading = SqliteReading(connection)
        self.clock = clock

    async def read(self, look: Callable[[Reading], Outcome]) -> Outcome:
        self.connection.execute("BEGIN")
        self.reading.now_ms = self.clock.now_ms()
        try:
            return look(self.reading)
        finally:
            self.connection.execute("ROLLBACK")

    async def close(self) -> None:
        close_as_it_is(self.connection)


class DirectStore(SqliteStore):
    """The store without its threads, and so without waiting for their end."""

    def __init__(
        self,
        home: Path,
        lock: HomeLock,
        writer: DirectWriter,
        readers: DirectReaders,
        context: VerbContext,
    ) -> None:
        self.home_lock, self.writer, self.readers = lock, writer, readers
        super().__init__(
            path=home / DATABASE_NAME,
            lock=lock,
            writer=writer,
            readers=readers,
            context=context,
            backups=SqliteBackups(home, writer.clock, CrashPoint("")),
            warnings=(),
        )

    async def close(self) -> None:
        await self.readers.close()
        await self.writer.close()
        self.home_lock.release()


class DirectBackend:
    """The lives of a home. Each finds the file with its log as the last one left it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._codes = 0
        path.mkdir(parents=True)

    async def open(
        self,
        world: BootConfig,
        clock: Clock,
        wakeups: Wakeups,
        limits: Limits,
        on_failure: Callable[[StoreFailed], None],
    ) -> Store:
        lock = await take_lock(self.path, wait_seconds=0, clock=clock, who="a machine")
        file = self.path / DATABASE_NAME
        connection = open_writer(file)
        # No one pulls the plug of the machine.
        connection.pragma("synchronous", "OFF")
        context = VerbContext(
            world=world,
            waiting_max=limits.waiting_max,
            question_age_ms_max=limits.question_age_ms_max,
            context_steps_max=limits.context_steps_max,
            notify=limits.notify,
            report_limits=limits.reports,
            pairing=limits.pairing,
            new_code=self._next_code,
        )
        writer = DirectWriter(connection, clock, wakeups)
        readers = DirectReaders(open_reader(file), clock)
        return DirectStore(self.path, lock, writer, readers, context)

    async def kill(self, store: Store) -> None:
        """Nothing is moved or flushed at an end here, so each one is as good as a kill."""
        await store.close()

    def rows(self) -> Rows:
        return glance(self.path)

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        return run_sql(self.path, statements)

    def done(self) -> None:
        """The files go with the folder of the test."""

    def _next_code(self) -> str:
        self._codes += 1
        return nth_code(self._codes)


def close_as_it_is(connection: apsw.Connection) -> None:
    """Without the checkpoint that the last one who closes a file makes."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()
