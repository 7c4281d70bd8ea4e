"""The store on PostgreSQL: one writer and a few readers of this node, on a database that other
nodes share. The home stays this node's own: its lock, its id and its processes."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from anyio import to_thread

from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.domain.recovery import BootConfig
from koboshi.domain.timing import Timing
from koboshi.kernel.accept import InboxVerbs
from koboshi.kernel.approval_verbs import ApprovalVerbs
from koboshi.kernel.browsers import BrowserVerbs
from koboshi.kernel.chats import ChatVerbs
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number, text
from koboshi.kernel.deliveries import DeliveryVerbs, hold_outbox
from koboshi.kernel.erasure_verbs import ErasureVerbs
from koboshi.kernel.goals import GoalVerbs
from koboshi.kernel.keys import lock_found
from koboshi.kernel.minutes import MinuteVerbs
from koboshi.kernel.people import PeopleVerbs
from koboshi.kernel.processes import ProcessVerbs
from koboshi.kernel.retention import RetentionVerbs
from koboshi.kernel.schedules import ScheduleVerbs
from koboshi.kernel.search import SearchVerbs
from koboshi.kernel.sessions import SessionVerbs
from koboshi.kernel.transaction import Transaction
from koboshi.kernel.turns import TurnVerbs
from koboshi.kernel.views import ViewVerbs
from koboshi.kernel.workers import WorkerVerbs
from koboshi.ports.clock import Clock
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.faults import CrashPoint
from koboshi.stores.home_id import home_id
from koboshi.stores.lock import HomeLock, take_lock
from koboshi.stores.options import StoreOptions, context_of
from koboshi.stores.postgres.backups import NoBackups
from koboshi.stores.postgres.batches import ROUND_SECONDS_MAX, Batches
from koboshi.stores.postgres.migrate import bring_up_to_date
from koboshi.stores.postgres.reader import PostgresReaders
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.times import ServerTime, StoreTime
from koboshi.stores.postgres.wire import Lost, ServerError, Wire, WireRequest
from koboshi.stores.postgres.writer import PostgresWriter

_UNSAFE = ("off",)


class PostgresStore:
    """All verbs on one database. Made by `open_postgres`."""

    def __init__(
        self,
        *,
        lock: HomeLock,
        writer: PostgresWriter,
        batches: Batches,
        readers: PostgresReaders,
        context: VerbContext,
        engine: str,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self._lock = lock
        self._writer = writer
        self._batches = batches
        self._readers = readers
        self._is_closed = False
        self.warnings = warnings
        self.sessions = SessionVerbs(readers)
        self.inbox = InboxVerbs(writer, readers, context)
        self.turns = TurnVerbs(writer, readers, context)
        self.outbox = DeliveryVerbs(writer, readers, context)
        self.processes = ProcessVerbs(writer, readers, context)
        self.workers = WorkerVerbs(writer, readers, context)
        self.people = PeopleVerbs(writer, readers, context)
        self.erasures = ErasureVerbs(writer, readers, context, _forget_log)
        self.browsers = BrowserVerbs(writer, readers)
        self.approvals = ApprovalVerbs(writer, readers)
        self.views = ViewVerbs(readers, context, engine)
        self.backups = NoBackups()
        self.retention = RetentionVerbs(writer, readers)
        self.schedules = ScheduleVerbs(writer, readers, context)
        self.goals = GoalVerbs(writer, readers, context)
        self.chats = ChatVerbs(writer, context)
        self.minutes = MinuteVerbs(writer, readers)
        self.search = SearchVerbs(writer, readers, _match)

    @property
    def trouble(self) -> str | None:
        return self._batches.trouble

    @property
    def failure(self) -> str | None:
        return self._writer.failure

    @property
    def commits(self) -> int:
        """How many transactions were committed, for measuring."""
        return self._batches.commits

    @property
    def rounds(self) -> int:
        """How many round trips the writer has made, for measuring."""
        return self._batches.rounds

    @property
    def commit_times(self) -> Timing:
        """How long transactions took, from their first statement until they were durable."""
        return self._writer.commit_times

    @property
    def refusals(self) -> Mapping[str, int]:
        """How often a batch had to be tried again, by why."""
        return self._batches.refusals

    @property
    def unknown_commits(self) -> Mapping[str, int]:
        """Commits of unknown outcome, by what became of them."""
        return self._batches.resolved

    @property
    def fenced(self) -> int:
        """How many writes were refused because their claim no longer held."""
        return self._batches.fenced

    @property
    def reserve_bytes(self) -> int:
        """Nothing is kept back: the disk is the server's."""
        return 0

    def stop_waiting(self) -> None:
        self._writer.stop_waiting()

    async def close(self) -> None:
        """Finish what was submitted and give the home back."""
        if self._is_closed:
            return
        self._is_closed = True
        self.stop_waiting()
        await self._readers.close()
        await self._writer.close()
        self._lock.release()


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
    is_shared: bool = False,
    time: StoreTime | None = None,
    connect: Callable[[], Wire] | None = None,
) -> PostgresStore:
    """Own the home and open the database, whose tables are made if there are none.

    Raises HomeHeld when another process owns the home, StoreRefused when the database is not one
    that may be used, and StoreFailed when it cannot be reached. `on_failure`, and `on_trouble` when
    writes begin to wait, are called from threads of the store. A test may have a `time` that is not
    the server's, and its own way to `connect`. A database that is not shared serves one home.
    """
    lock = await take_lock(
        home, wait_seconds=options.lock_wait_seconds, clock=clock, who=options.who
    )
    with ExitStack() as undo:
        undo.callback(lock.release)
        crash_point = CrashPoint(options.crash_at)
        own_id = home_id(home)
        connect = partial(Wire.connect, url, statements(), clock) if connect is None else connect
        engine, server_ms = await to_thread.run_sync(
            partial(_prepare, connect, options, None if is_shared else own_id)
        )
        undo.pop_all()
    time = ServerTime(clock, server_ms) if time is None else time
    context = context_of(world, options, own_id)
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
    return PostgresStore(
        lock=lock,
        writer=writer,
        batches=batches,
        readers=PostgresReaders(connect, time, batches.impatient),
        context=context,
        engine=engine,
        warnings=await _held(writer, options),
    )


async def _held(writer: PostgresWriter, options: StoreOptions) -> tuple[str, ...]:
    if not options.hold_asked_by:
        return ()
    held = await writer.write("outbox.hold_asked", partial(hold_as_asked, options))
    return (f"{held} owed and held: `koboshi outbox release` sends it",) if held else ()


def hold_as_asked(options: StoreOptions, tx: Transaction) -> int:
    """Hold all owed deliveries, once for each who asked. Returns how many are held now."""
    if tx.change("hold_insert", cause=f"asked:{options.hold_asked_by}", gap=None, now=tx.now_ms):
        lock_found(tx, "keys_of_ages")
        hold_outbox(tx, "held: asked for at the start")
    return tx.number("count_held")


def _prepare(
    connect: Callable[[], Wire], options: StoreOptions, only_home: str | None
) -> tuple[str, int]:
    """The name of the server and its clock, once its database can be used: by the gateway of this
    home alone, unless it is shared."""
    try:
        wire = connect()
    except Lost as error:
        raise StoreFailed(f"the database cannot be reached: {error}") from error
    major, minor = divmod(wire.server_version, 10_000)
    try:
        bring_up_to_date(wire)
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
        if only_home is not None:
            _refuse_others(wire, only_home)
        (now,) = wire.one("server_clock", within_s=ROUND_SECONDS_MAX).rows[0]
    except Lost as error:
        raise StoreFailed(f"the database cannot be used now: {error}") from error
    except ServerError as error:
        raise StoreRefused(f"the database cannot be used: {error}") from error
    finally:
        wire.close()
    return f"PostgreSQL {major}.{minor}", number(now)


def _refuse_others(wire: Wire, home: str) -> None:
    asked = WireRequest("other_homes", {"home": home})
    (found,) = wire.round([asked], within_s=ROUND_SECONDS_MAX)
    if found.rows[0][0]:
        raise StoreRefused(
            "a gateway with another home has worked on this database, and one database serves one "
            "home; use the home that it began with, or a database of its own"
        )


async def _forget_log() -> bool:
    """The log of the server is the server's: nothing of it lies in the home."""
    return True


def _match(words: tuple[str, ...]) -> str:
    """In quotes nothing is an operator. The last word may be half typed."""
    return " & ".join(f"'{word}'" for word in words) + ":*"
