"""The real store on a real file, without its threads: commits happen when the virtual time comes.

The verbs, the SQL and the schema are the product's own. Only the thread that commits and those
that read are replaced, because threads would make each run another one.
"""

import random
from asyncio import Future, get_running_loop
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import apsw
from anyio import CancelScope
from anyio.lowlevel import checkpoint

from koboshi.domain.errors import StoreFailed
from koboshi.domain.people import PairingLimits
from koboshi.domain.recovery import BootConfig
from koboshi.domain.watch import Notify, ReportLimits
from koboshi.kernel.clocks import JumpWatch
from koboshi.kernel.context import VerbContext
from koboshi.kernel.transaction import NO_KEYS, Keys, Reading, Transaction
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.faults import CrashPoint
from koboshi.stores.lock import take_lock
from koboshi.stores.postgres.store import PostgresStore
from koboshi.stores.sqlite.backups import SqliteBackups
from koboshi.stores.sqlite.file import DATABASE_NAME, open_reader, open_writer
from koboshi.stores.sqlite.reader import SqliteReaders
from koboshi.stores.sqlite.store import SqliteStore
from koboshi.stores.sqlite.transaction import SqliteReading
from koboshi.stores.sqlite.writer import SqliteWriter
from tests.harness.named_keys import CheckedTransaction, checked
from tests.harness.rows import Rows, rows_in
from tests.sim.direct import close_as_it_is
from tests.sim.loop import SimClock
from tests.sim.power import Power

Outcome = TypeVar("Outcome")

COMMIT_SECONDS = (0.000_2, 0.003)
QUESTION_AGE_MS = 240_000


@dataclass(slots=True)
class SimSubmitted:
    verb: str
    operation: Callable[[Transaction], Any]
    future: "Future[Any]"
    keys: Keys = NO_KEYS
    is_awaited: bool = True
    result: object = None
    error: Exception | None = None


@dataclass(slots=True, kw_only=True)
class Promises:
    """How the store keeps its word; broken on purpose by some tests."""

    answers_early: set[str] = field(default_factory=set)
    """Verbs that are answered before they are committed."""


class SimWriter(SqliteWriter):
    """Carries out what was submitted in one transaction, a moment later; then answers, another
    moment later. The power may go off before the commit, and between the commit and the answer."""

    def __init__(  # the thread of the real one is not started
        self,
        connection: apsw.Connection,
        *,
        clock: SimClock,
        wakeups: Wakeups,
        power: Power,
        promises: Promises,
    ) -> None:
        self.connection = connection
        self.transaction = CheckedTransaction(connection)
        self.clock = clock
        self.jumps = JumpWatch(clock)
        self.wakeups = wakeups
        self.power = power
        self.promises = promises
        self.queue: list[SimSubmitted] = []
        self.unanswered: list[SimSubmitted] = []
        self.is_busy = False
        self.trouble = None
        self.commits = 0
        power.on_off.append(self.fail_all)

    async def write(
        self,
        verb: str,
        operation: Callable[[Transaction], Outcome],
        keys: Keys = NO_KEYS,
    ) -> Outcome:
        self.power.check_on()
        submitted = self.submitted(verb, operation, keys)
        if verb in self.promises.answers_early:
            return self._carry_out_later(submitted)
        self._submit(submitted)
        with CancelScope(shield=True):
            result: Outcome = await submitted.future
        return result

    def submitted(
        self, verb: str, operation: Callable[[Transaction], Any], keys: Keys
    ) -> SimSubmitted:
        future: Future[Any] = get_running_loop().create_future()
        return SimSubmitted(verb, checked(verb, operation, keys), future)

    def _carry_out_later(self, submitted: SimSubmitted) -> Any:
        """A broken promise: the answer is what will be true if nothing happens until then."""
        self.connection.execute("BEGIN")
        self.transaction.now_ms = self.clock.now_ms()
        result = submitted.operation(self.transaction)
        self.connection.execute("ROLLBACK")
        self.transaction.forget()
        submitted.is_awaited = False
        get_running_loop().call_later(0.5, self._submit, submitted)
        return result

    def _submit(self, submitted: SimSubmitted) -> None:
        if self.power.is_off:
            return
        self.queue.append(submitted)
        self.unanswered.append(submitted)
        self._begin()

    def _begin(self) -> None:
        if self.queue and not self.is_busy and not self.power.is_off:
            self.is_busy = True
            get_running_loop().call_later(self._moment(), self.commit_now)

    def _moment(self) -> float:
        return self.power.dice.uniform(*COMMIT_SECONDS)

    def commit_now(self) -> None:
        batch, self.queue = self.queue, []
        verbs = [submitted.verb for submitted in batch]
        for verb in verbs:
            self.power.reach(verb, "before")
        if self.power.is_off:
            return
        self.connection.execute("BEGIN IMMEDIATE")
        self.transaction.forget()
        self.jumps.begin(self.transaction)
        self._carry_out_all(batch)
        self.connection.execute("COMMIT")
        self.jumps.committed()
        self.committed(batch)

    def committed(self, batch: list[SimSubmitted]) -> None:
        """It is durable, and is answered in a moment."""
        self.commits += 1
        self.power.history.count("commits")
        self.power.history.tell("commit " + " ".join(_told(submitted) for submitted in batch))
        for submitted in batch:
            self.power.reach(submitted.verb, "after")
        get_running_loop().call_later(self._moment(), self.answer_now, batch)

    def _carry_out_all(self, batch: list[SimSubmitted]) -> None:
        """Together; or one by one if one of them fails, as the real one does."""
        try:
            for submitted in batch:
                submitted.result = submitted.operation(self.transaction)
        except Exception:  # found again, and given to its caller
            self.connection.execute("ROLLBACK")
            self.transaction.hints = set()
            self.connection.execute("BEGIN IMMEDIATE")
            self.transaction.forget()
            self.jumps.begin(self.transaction)
            for submitted in batch:
                self._carry_out_one(submitted)

    def _carry_out_one(self, submitted: SimSubmitted) -> None:
        self.connection.execute("SAVEPOINT operation")
        try:
            submitted.result = submitted.operation(self.transaction)
        except Exception as error:  # it belongs to its caller
            submitted.error = error
            self.connection.execute("ROLLBACK TO operation")
            self.transaction.forget()
        self.connection.execute("RELEASE operation")

    def answer_now(self, batch: list[SimSubmitted]) -> None:
        self.is_busy = False
        if self.power.is_off:
            return
        for submitted in batch:
            self.unanswered.remove(submitted)
            if submitted.error is not None:
                submitted.future.set_exception(submitted.error)
            else:
                submitted.future.set_result(submitted.result)
        for topic in sorted(self.hints_of_batch()):
            self.wakeups.hint(topic)
        self._begin()

    def hints_of_batch(self) -> set[str]:
        hints, self.transaction.hints = self.transaction.hints, set()
        return hints

    def fail_all(self) -> None:
        """No notice is sent anything any more."""
        for submitted in self.unanswered:
            if submitted.is_awaited and not submitted.future.done():
                submitted.future.set_exception(StoreFailed("the power is off"))
        self.unanswered = []

    def stop_waiting(self) -> None:
        """Nothing here waits for a disk."""

    async def close(self) -> None:
        """What is in the log stays there, as after a kill."""
        close_as_it_is(self.connection)


class SimReaders(SqliteReaders):
    """Looks at one moment, and tells it then or a little later."""

    def __init__(
        self, connection: apsw.Connection, *, clock: SimClock, power: Power, dice: random.Random
    ) -> None:
        self.connection = connection
        self.reading = SqliteReading(connection)
        self.clock = clock
        self.power = power
        self.dice = dice

    async def read(self, look: Callable[[Reading], Outcome]) -> Outcome:
        self.power.check_on()
        is_late = self.dice.random() < 0.5
        if is_late:
            await checkpoint()
            self.power.check_on()
        seen = self.look_now(look)
        if not is_late:
            await checkpoint()
        return seen

    def look_now(self, look: Callable[[Reading], Outcome]) -> Outcome:
        self.connection.execute("BEGIN")
        self.reading.now_ms = self.clock.now_ms()
        try:
            return look(self.reading)
        finally:
            self.connection.execute("ROLLBACK")

    def rows(self) -> Rows:
        """What is stored now."""
        return rows_in(self.connection)

    async def close(self) -> None:
        close_as_it_is(self.connection)


@dataclass(slots=True, kw_only=True)
class Opened:
    store: SqliteStore | PostgresStore
    readers: SimReaders


async def open_sim_store(
    home: Path,
    *,
    world: BootConfig,
    clock: SimClock,
    wakeups: Wakeups,
    power: Power,
    promises: Promises,
    new_code: Callable[[], str],
    is_second: bool,
) -> Opened:
    """Own the home, as `open_store` does, with the power in a person's hands. A second one has a
    lock of its own: nothing keeps it out."""
    place = home / "second" if is_second else home
    place.mkdir(exist_ok=True)
    lock = await take_lock(place, wait_seconds=0, clock=clock, who="a simulation")
    path = home / DATABASE_NAME
    connection = open_writer(path)
    # The file outlives the lives of a run, and no one pulls the plug of the machine.
    connection.pragma("synchronous", "OFF")
    readers = SimReaders(open_reader(path), clock=clock, power=power, dice=power.dice)
    writer = SimWriter(connection, clock=clock, wakeups=wakeups, power=power, promises=promises)
    context = sim_context(world, new_code)
    store = SqliteStore(
        path=path,
        lock=lock,
        writer=writer,
        readers=readers,
        context=context,
        backups=SqliteBackups(home, clock, CrashPoint("")),
        warnings=(),
    )
    return Opened(store=store, readers=readers)


def sim_context(
    world: BootConfig, new_code: Callable[[], str], *, is_shared: bool = False
) -> VerbContext:
    return VerbContext(
        world=world,
        waiting_max=1_000,
        question_age_ms_max=QUESTION_AGE_MS,
        context_steps_max=1_000,
        notify=Notify.ALL,
        report_limits=ReportLimits(),
        pairing=PairingLimits(),
        new_code=new_code,
        is_shared=is_shared,
    )


def _told(submitted: SimSubmitted) -> str:
    return submitted.verb if submitted.error is None else f"{submitted.verb}({submitted.error})"
