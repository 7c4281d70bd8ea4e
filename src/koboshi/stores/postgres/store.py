"""The store on PostgreSQL: one writer and a few readers of this node, on a database that other
nodes share. The home stays this node's own: its lock, its id and its processes."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from anyio import CancelScope, to_thread

from koboshi.domain.burial import LEASE_SECONDS
from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.domain.recovery import BootConfig
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number, text
from koboshi.kernel.deliveries import hold_outbox
from koboshi.kernel.keys import lock_found
from koboshi.kernel.transaction import Transaction
from koboshi.ports.clock import Clock
from koboshi.ports.server import ServerFigures
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.faults import CrashPoint
from koboshi.stores.home_id import home_id
from koboshi.stores.lock import HomeLock, take_lock
from koboshi.stores.marks import Mark, refuse_idle_rows
from koboshi.stores.options import StoreOptions, context_of
from koboshi.stores.postgres.backups import NoBackups, StoreBackups
from koboshi.stores.postgres.batches import Batches
from koboshi.stores.postgres.going_back import (
    LookedBack,
    ServerWitnessFile,
    notice,
    read_witness,
    set_processes_aside,
)
from koboshi.stores.postgres.listen import EVERYTHING, NodeHints
from koboshi.stores.postgres.migrate import bring_up_to_date
from koboshi.stores.postgres.reach import NO_WRITES, ROUND_SECONDS_MAX, ServerReach
from koboshi.stores.postgres.reader import PostgresReaders
from koboshi.stores.postgres.server_views import ServerViews
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.times import ServerTime, StoreTime
from koboshi.stores.postgres.wire import Lost, Pooled, ServerError, Wire
from koboshi.stores.postgres.writer import PostgresWriter
from koboshi.stores.store_verbs import DatabaseWays, StoreVerbs

_UNSAFE = ("off",)


class PostgresStore(StoreVerbs):
    """All verbs on one database. Made by `open_postgres`."""

    def __init__(
        self,
        *,
        lock: HomeLock,
        writer: PostgresWriter,
        batches: Batches,
        readers: PostgresReaders,
        context: VerbContext,
        clock: Clock,
        engine: str,
        backups: StoreBackups,
        connect: Callable[[], Wire],
        wakeups: Wakeups,
        warnings: tuple[str, ...] = (),
        witness: ServerWitnessFile | None = None,
    ) -> None:
        self.is_shared = True
        self._connect, self._clock, self._wakeups = connect, clock, wakeups
        self._hints: NodeHints | None = None
        self._writer = writer
        super().__init__(
            lock=lock,
            writer=writer,
            readers=readers,
            counts=batches,
            context=context,
            ways=DatabaseWays(engine=engine, match=_match, forget_log=_forget_log),
            warnings=warnings,
            witness=witness,
        )
        self._batches = batches
        self.views = ServerViews(readers, context, engine, clock)
        self.backups = backups

    @property
    def rounds(self) -> int:
        """How many round trips the writer has made, for measuring."""
        return self._batches.rounds

    @property
    def unknown_commits(self) -> Mapping[str, int]:
        """Commits of unknown outcome, by what became of them."""
        return self._batches.resolved

    @property
    def figures(self) -> ServerFigures:
        return ServerFigures(
            rounds=self._batches.rounds,
            reconnects=self._batches.refusals["lost"],
            unknown_commits=dict(self._batches.resolved),
            lock_waits=self._batches.lock_waits,
            lease_age_s=max(0.0, self._clock.monotonic() - self._batches.alive_at),
        )

    @property
    def reserve_bytes(self) -> int:
        """Nothing is kept back: the disk is the server's."""
        return 0

    @property
    def is_listening(self) -> bool:
        """Whether hints of other nodes are heard now."""
        return self._hints is not None and self._hints.is_listening.is_set()

    def listen(self) -> None:
        """Hear the hints of other nodes from now on, and give them ours."""
        loop, wakeups = asyncio.get_running_loop(), self._wakeups

        def heard(topics: frozenset[str]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_pass_on, wakeups, topics)

        self._hints = NodeHints(self._connect, self._clock, heard)
        self._writer.on_hints = self._hints.tell

    async def _stop_own(self) -> None:
        self.stop_waiting()
        with CancelScope(shield=True):
            await to_thread.run_sync(self.backups.stop)
        if self._hints is not None:
            await to_thread.run_sync(self._hints.close)


async def open_postgres(
    url: str,
    home: Path,
    *,
    world: BootConfig,
    clock: Clock,
    wakeups: Wakeups,
    options: StoreOptions = StoreOptions(),  # noqa: B008  (frozen)
    on_failure: Callable[[StoreFailed], None] = lambda _: None,
    on_trouble: Callable[[str], None] = lambda _: None,
    backups: StoreBackups | None = None,
    time: StoreTime | None = None,
    connect: Callable[[], Wire] | None = None,
) -> PostgresStore:
    """Own the home and open the database, whose tables are made if there are none.

    Raises HomeHeld when another process owns the home, StoreRefused for a database that may not be
    used, and StoreFailed when it cannot be reached. `on_failure` and `on_trouble` are called from
    threads of the store. A test may have a `time` of its own, and its own way to `connect`.
    """
    lock = await _lock(home, clock, options)
    with ExitStack() as undo:
        undo.callback(lock.release)
        crash_point, own_id = CrashPoint(options.crash_at), home_id(home)
        if connect is None:
            pace = min(1.0, options.lease_seconds / LEASE_SECONDS)
            connect = partial(Wire.connect, url, statements(), clock, pace)
        engine, server_ms = await to_thread.run_sync(partial(_prepare, connect, options))
        undo.pop_all()
    time = ServerTime(clock, server_ms) if time is None else time
    context = context_of(world, options, own_id, is_shared=True)
    batches = Batches(
        connect,
        time=time,
        worker=lambda: context.worker_id,
        crash_point=crash_point,
        on_trouble=on_trouble,
    )
    writer = PostgresWriter(
        batches, clock=clock, wakeups=wakeups, batch_max=options.batch_max, on_failure=on_failure
    )
    found = await _look_back(writer, batches.reach, home, options)
    return PostgresStore(
        lock=lock,
        writer=writer,
        batches=batches,
        readers=PostgresReaders(connect, time, batches.impatient),
        context=context,
        clock=clock,
        engine=engine,
        backups=backups or NoBackups(),
        connect=connect,
        wakeups=wakeups,
        warnings=found.warnings,
        witness=found.witness,
    )


async def _lock(home: Path, clock: Clock, options: StoreOptions) -> HomeLock:
    waits_s = options.lock_wait_seconds
    return await take_lock(home, wait_seconds=waits_s, clock=clock, who=options.who)


async def _look_back(
    writer: PostgresWriter, reach: ServerReach, home: Path, options: StoreOptions
) -> LookedBack:
    """Hold all owed deliveries where the database went back, or the operator asks for it. A
    client that only looks changes nothing."""
    held = await _held(writer, options)
    if not options.may_replace:
        return LookedBack(held)
    looked = await writer.write("outbox.hold_back", partial(notice, read_witness(home), reach))
    stamp = f"went-back-{looked.database_id[:8]}-{looked.newest_process}"
    await to_thread.run_sync(set_processes_aside, home, looked.newest_process, stamp)
    warnings = held if looked.gap is None else (looked.gap, *held)
    return LookedBack(warnings, ServerWitnessFile(home, looked.database_id))


async def _held(writer: PostgresWriter, options: StoreOptions) -> tuple[str, ...]:
    if not options.hold_asked_by:
        return ()
    held = await writer.write("outbox.hold_asked", partial(hold_as_asked, options))
    return (f"{held} held: `koboshi outbox release` sends what is held",) if held else ()


def hold_as_asked(options: StoreOptions, tx: Transaction) -> int:
    """Hold all owed deliveries, once for each who asked. Returns how many are held now."""
    if tx.change("hold_insert", cause=f"asked:{options.hold_asked_by}", gap=None, now=tx.now_ms):
        lock_found(tx, "keys_of_ages")
        hold_outbox(tx, "held: asked for at the start")
    return tx.number("count_held")


def _prepare(connect: Callable[[], Wire], options: StoreOptions) -> tuple[str, int]:
    """The name of the server and its clock, once its database can be used."""
    try:
        wire = connect()
    except Pooled as error:
        raise StoreRefused(str(error)) from error
    except Lost as error:
        raise StoreFailed(f"the database cannot be reached: {error}") from error
    major, minor = divmod(wire.server_version, 10_000)
    try:
        if text(wire.one("server_writes", within_s=ROUND_SECONDS_MAX).rows[0][0]) == "on":
            raise StoreFailed(NO_WRITES)
        bring_up_to_date(wire)
        found = wire.one("move_state", within_s=ROUND_SECONDS_MAX).rows
        refuse_idle_rows("the database", Mark.of_row(found[0]) if found else None)
        safety = wire.one("server_safety", within_s=ROUND_SECONDS_MAX).rows[0]
        fsync, commit, encoding = (text(each) for each in safety)
        may_lose = options.accepts_loss or not options.may_replace
        if not may_lose and (fsync in _UNSAFE or commit in _UNSAFE):
            raise StoreRefused(
                f"the server would lose what it acknowledged: fsync is {fsync}, "
                f"synchronous_commit is {commit}. Both must be on"
            )
        if encoding != "UTF8":
            raise StoreRefused(f"the encoding of the database must be UTF8, not {encoding}")
        (now,) = wire.one("server_clock", within_s=ROUND_SECONDS_MAX).rows[0]
    except Lost as error:
        raise StoreFailed(f"the database cannot be used now: {error}") from error
    except ServerError as error:
        words = Pooled(error) if error.is_pooled else error
        raise StoreRefused(f"the database cannot be used: {words}") from error
    finally:
        wire.close()
    return f"PostgreSQL {major}.{minor}", number(now)


def _pass_on(wakeups: Wakeups, topics: frozenset[str]) -> None:
    if EVERYTHING in topics:
        wakeups.hint_all()
    for topic in topics:
        wakeups.hint(topic)


async def _forget_log() -> bool:
    """The log of the server is the server's: nothing of it lies in the home."""
    return True


def _match(words: tuple[str, ...]) -> tuple[str, ...]:
    """In quotes nothing is an operator. The last word may be half typed."""
    return (" & ".join(f"'{word}'" for word in words) + ":*",)
