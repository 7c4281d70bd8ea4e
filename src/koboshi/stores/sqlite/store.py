"""The store in a home: one lock, one writer, a few readers."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import apsw
from anyio import CancelScope, to_thread

from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.domain.recovery import BootConfig
from koboshi.domain.timing import Timing
from koboshi.kernel.accept import InboxVerbs
from koboshi.kernel.approval_verbs import ApprovalVerbs
from koboshi.kernel.browsers import BrowserVerbs
from koboshi.kernel.chats import ChatVerbs
from koboshi.kernel.context import VerbContext
from koboshi.kernel.deliveries import DeliveryVerbs
from koboshi.kernel.erasure_verbs import ErasureVerbs
from koboshi.kernel.goals import GoalVerbs
from koboshi.kernel.minutes import MinuteVerbs
from koboshi.kernel.notices import tell_of_full_disk
from koboshi.kernel.people import PeopleVerbs
from koboshi.kernel.processes import ProcessVerbs
from koboshi.kernel.retention import RetentionVerbs
from koboshi.kernel.schedules import ScheduleVerbs
from koboshi.kernel.search import SearchVerbs
from koboshi.kernel.sessions import SessionVerbs
from koboshi.kernel.turns import TurnVerbs
from koboshi.kernel.views import ViewVerbs
from koboshi.kernel.workers import WorkerVerbs
from koboshi.ports.clock import Clock
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.faults import CrashPoint
from koboshi.stores.home_id import home_id
from koboshi.stores.lock import LOCK_NAME, HomeLock, take_lock
from koboshi.stores.options import StoreOptions as StoreOptions
from koboshi.stores.options import context_of
from koboshi.stores.sqlite.backups import SqliteBackups
from koboshi.stores.sqlite.file import (
    DATABASE_NAME,
    READER_COUNT,
    Damaged,
    forget_log,
    open_reader,
    open_writer,
)
from koboshi.stores.sqlite.holding import hold_as_asked, notice_gap
from koboshi.stores.sqlite.open_files import look_at_open_files
from koboshi.stores.sqlite.ownership import rehome
from koboshi.stores.sqlite.quarantine import (
    begin_empty,
    finish_restore,
    forget_restore,
    is_restoring,
    newest_backup,
    refuse_half_restored,
    restore,
)
from koboshi.stores.sqlite.reader import SqliteReaders
from koboshi.stores.sqlite.room import DiskSpace, make_way
from koboshi.stores.sqlite.witness_file import WitnessFile
from koboshi.stores.sqlite.writer import SqliteWriter

LOG_NAME = f"{DATABASE_NAME}-wal"


class SqliteStore:
    """All verbs on one file. Made by `open_store`."""

    def __init__(
        self,
        *,
        lock: HomeLock,
        writer: SqliteWriter,
        readers: SqliteReaders,
        context: VerbContext,
        backups: SqliteBackups,
        warnings: tuple[str, ...],
        witness: WitnessFile | None = None,
        path: Path,
    ) -> None:
        self._lock = lock
        self._writer = writer
        self._readers = readers
        self._is_closed = False
        self.warnings = warnings
        self.sessions = SessionVerbs(readers)
        self.inbox = InboxVerbs(writer, readers, context)
        self.turns = TurnVerbs(writer, readers, context)
        self.outbox = DeliveryVerbs(writer, readers, context)
        self.processes = ProcessVerbs(writer, readers, context)
        self.workers = WorkerVerbs(writer, readers, context, witness)
        self.people = PeopleVerbs(writer, readers, context)
        self.erasures = ErasureVerbs(
            writer, readers, context, lambda: to_thread.run_sync(forget_log, path)
        )
        self.browsers = BrowserVerbs(writer, readers)
        self.minutes = MinuteVerbs(writer, readers)
        self.search = SearchVerbs(writer, readers, _match)
        self.chats = ChatVerbs(writer, context)
        self.approvals = ApprovalVerbs(writer, readers)
        self.views = ViewVerbs(readers, context, apsw.sqlite_lib_version())
        self.backups = backups
        self.retention = RetentionVerbs(writer, readers)
        self.schedules = ScheduleVerbs(writer, readers, context)
        self.goals = GoalVerbs(writer, readers, context)

    @property
    def trouble(self) -> str | None:
        return self._writer.trouble

    @property
    def failure(self) -> str | None:
        return self._writer.failure

    @property
    def commits(self) -> int:
        """How many transactions were committed, for measuring."""
        return self._writer.commits

    @property
    def commit_times(self) -> Timing:
        """How long transactions took, from their first statement until they were durable."""
        return self._writer.commit_times

    @property
    def refusals(self) -> Mapping[str, int]:
        """How often a commit had to be tried again, by why."""
        return self._writer.refusals

    @property
    def fenced(self) -> int:
        """How many writes were refused because their claim no longer held."""
        return self._writer.fenced

    @property
    def reserve_bytes(self) -> int:
        """What is kept back for a full disk; 0 while it is used."""
        return self._writer.reserve_bytes

    def stop_waiting(self) -> None:
        self._writer.stop_waiting()

    async def close(self) -> None:
        """Finish what was submitted and give the home back."""
        if self._is_closed:
            return
        self._is_closed = True
        with CancelScope(shield=True):
            await to_thread.run_sync(self.backups.stop)
        await self._readers.close()
        await self._writer.close()
        self._lock.release()


async def open_store(
    home: Path,
    *,
    world: BootConfig,
    clock: Clock,
    wakeups: Wakeups,
    options: StoreOptions = StoreOptions(),  # noqa: B008  (frozen)
    on_failure: Callable[[StoreFailed], None] = lambda _: None,
    on_trouble: Callable[[str], None] = lambda _: None,
) -> SqliteStore:
    """Own the home and open its database, made new if there is none.

    Raises HomeHeld when another process owns the home, StoreRefused when the file is not one that
    may be used; then nothing was changed. `on_failure`, and `on_trouble` when writes begin
    to wait, are called from threads of the store.
    """
    crash_point = CrashPoint(options.crash_at)
    lock = await take_lock(
        home, wait_seconds=options.lock_wait_seconds, clock=clock, who=options.who
    )
    with ExitStack() as undo:
        undo.callback(lock.release)
        path = home / DATABASE_NAME
        is_short = options.keeps_reserve and make_way(home)
        now_ms = clock.now_ms()
        connection, warnings = _open_or_replace(home, path, _stamp(now_ms), options)
        undo.callback(connection.close)
        own_id = home_id(home)
        rehome(connection, own_id)
        warnings += tuple(_hold(home, connection, now_ms, options, crash_point))
        looking = [open_reader(path) for _ in range(READER_COUNT)]
        undo.pop_all()
    writer = SqliteWriter(
        connection,
        clock=clock,
        wakeups=wakeups,
        crash_point=crash_point,
        batch_max=options.batch_max,
        on_failure=on_failure,
        on_trouble=on_trouble,
        files=look_at_open_files([home / LOCK_NAME], [path, home / LOG_NAME]),
        room=DiskSpace(home, connection, is_short=is_short) if options.keeps_reserve else None,
        on_full=tell_of_full_disk,
    )
    readers = SqliteReaders(looking, clock, on_broken=writer.give_up)
    return SqliteStore(
        lock=lock,
        writer=writer,
        readers=readers,
        context=context_of(world, options, own_id),
        backups=SqliteBackups(home, clock, crash_point),
        warnings=warnings,
        witness=WitnessFile(home),
        path=home / DATABASE_NAME,
    )


def _stamp(now_ms: int) -> str:
    return datetime.fromtimestamp(now_ms / 1000, tz=UTC).strftime("%Y%m%dT%H%M%S%f")


def _hold(
    home: Path,
    connection: apsw.Connection,
    now_ms: int,
    options: StoreOptions,
    crash_point: CrashPoint,
) -> Iterator[str]:
    """Hold what must not go out by itself, and say so."""
    if options.may_replace:
        gap = notice_gap(home, connection, now_ms, _stamp(now_ms), crash_point)
        if gap is not None:
            yield gap
    if options.hold_asked_by:
        held = hold_as_asked(connection, now_ms, options.hold_asked_by)
        if held:
            yield f"{held} owed and held: `koboshi outbox release` sends it"


def _open_or_replace(
    home: Path, path: Path, stamp: str, options: StoreOptions
) -> tuple[apsw.Connection, tuple[str, ...]]:
    if not options.may_replace:
        refuse_half_restored(home)
    if is_restoring(home):
        finish_restore(home, stamp)
        return open_writer(path), ("a restore was interrupted; it is finished, its outbox is held",)
    left = forget_restore(home) if options.may_replace else ""
    try:
        return open_writer(path), (left,) if left else ()
    except Damaged as damage:
        if not options.may_replace:
            raise
        backup = newest_backup(home)
        if backup is None and not options.accepts_loss:
            raise StoreRefused(
                f"{damage}. There is no backup to use. The file was left as it is; "
                "`koboshi run --accept-data-loss` sets it aside and starts empty"
            ) from damage
        if backup is None:
            kept = begin_empty(home, stamp)
            return open_writer(path), (f"{damage}; it is kept in {kept}, and we start empty",)
        replaced = restore(home, backup, stamp)
        words = f"it is kept in {replaced}, and {backup.name} is used with its outbox held"
        return open_writer(path), (f"{damage}; {words}",)


def _match(words: tuple[str, ...]) -> str:
    """In quotes nothing is an operator. The last word may be half typed."""
    return " ".join(f'"{word}"' for word in words) + " *"
