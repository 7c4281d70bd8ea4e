"""The store on a real PostgreSQL in the simulation: its batches are carried out when the virtual
time comes, in the thread of the loop. The server is told the time."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from koboshi.domain.errors import Buried
from koboshi.domain.recovery import BootConfig
from koboshi.kernel.transaction import Keys, Reading, Transaction
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.batch_writer import Submitted
from koboshi.stores.faults import CrashPoint
from koboshi.stores.lock import take_lock
from koboshi.stores.postgres.backups import NoBackups
from koboshi.stores.postgres.batches import Batches
from koboshi.stores.postgres.reach import ROUND_SECONDS_MAX
from koboshi.stores.postgres.store import PostgresStore
from koboshi.stores.postgres.times import OwnTime
from koboshi.stores.postgres.transaction import PostgresReading
from koboshi.stores.postgres.wire import COMMIT, NOTHING, Wire, WireAnswer, WireRequest
from tests.harness.postgres_backend import Database
from tests.harness.rows import Rows
from tests.sim.loop import SimClock
from tests.sim.power import Power
from tests.sim.store import (
    Opened,
    Outcome,
    Promises,
    SimReaders,
    SimSubmitted,
    SimWriter,
    sim_context,
)

_LOOK = WireRequest("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NOTHING)


class ServerWriter(SimWriter):
    def __init__(  # of the real one, only the batches
        self,
        batches: Batches,
        *,
        clock: SimClock,
        wakeups: Wakeups,
        power: Power,
        promises: Promises,
    ) -> None:
        self.batches = batches
        self.clock = clock
        self.wakeups = wakeups
        self.power = power
        self.promises = promises
        self.queue: list[SimSubmitted] = []
        self.unanswered: list[SimSubmitted] = []
        self.hints: set[str] = set()
        self.is_busy = False
        self.trouble = None
        self.commits = 0
        self.on_hints: Callable[[set[str]], None] = lambda _: None
        power.on_off.append(self.fail_all)

    def submitted(
        self, verb: str, operation: Callable[[Transaction], Any], keys: Keys
    ) -> SimSubmitted:
        made = super().submitted(verb, operation, keys)
        made.operation, made.keys = operation, keys
        return made

    def commit_now(self) -> None:
        batch, self.queue = self.queue, []
        for submitted in batch:
            self.power.reach(submitted.verb, "before")
        if self.power.is_off:
            return
        asked = [Submitted(each.verb, each.operation, each.keys) for each in batch]
        try:
            self.batches.commit(asked)
        except Buried:  # its process ends
            self.power.go_off("it was buried")
            return
        for each, done in zip(batch, asked, strict=True):
            assert done.error is None or isinstance(done.error, Exception)
            each.result, each.error = done.result, done.error
            self.hints |= done.hints
        self.hints |= self.batches.clock_hints
        self.committed(batch)

    def hints_of_batch(self) -> set[str]:
        hints, self.hints = self.hints, set()
        return hints

    async def close(self) -> None:
        self.batches.close()


class ServerReaders(SimReaders):
    def __init__(self, database: Database, *, clock: SimClock, power: Power) -> None:
        self.database = database
        self.wire: Wire = database.connect()
        self.clock = clock
        self.power = power
        self.dice = power.dice

    def look_now(self, look: Callable[[Reading], Outcome]) -> Outcome:
        self.wire.round([_LOOK], within_s=ROUND_SECONDS_MAX)
        try:
            return look(PostgresReading(self._ask, self.clock.now_ms()))
        finally:
            self.wire.round([COMMIT], within_s=ROUND_SECONDS_MAX)

    def _ask(self, request: WireRequest) -> WireAnswer:
        return self.wire.round([request], within_s=ROUND_SECONDS_MAX)[0]

    def rows(self) -> Rows:
        return self.database.rows()

    async def close(self) -> None:
        self.wire.close()


async def open_server_store(
    database: Database,
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
    """As `open_sim_store` does, on a database that has its tables. A second one buries the first:
    both say that they have the home."""
    place = home / "second" if is_second else home
    place.mkdir(exist_ok=True)
    lock = await take_lock(place, wait_seconds=0, clock=clock, who="a simulation")
    context = sim_context(world, new_code, is_shared=True)
    batches = Batches(
        database.connect,
        time=OwnTime(clock),
        worker=lambda: context.worker_id,
        crash_point=CrashPoint(""),
        on_trouble=partial(power.history.tell),
    )
    readers = ServerReaders(database, clock=clock, power=power)
    store = PostgresStore(
        lock=lock,
        writer=ServerWriter(  # type: ignore[arg-type]
            batches, clock=clock, wakeups=wakeups, power=power, promises=promises
        ),
        batches=batches,
        readers=readers,  # type: ignore[arg-type]
        context=context,
        clock=clock,
        engine="PostgreSQL",
        backups=NoBackups(),
        connect=database.connect,
        wakeups=wakeups,
    )
    return Opened(store=store, readers=readers)
