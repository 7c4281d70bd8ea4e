"""The store in a home: one lock, one writer, a few readers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import apsw
from anyio import CancelScope, to_thread

from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.domain.recovery import BootConfig
from koboshi.kernel.context import VerbContext
from koboshi.kernel.notices import tell_of_full_disk
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
from koboshi.stores.store_verbs import DatabaseWays, StoreVerbs

PREFIX_MAX = 5
"""Beginnings of words up to this length are indexed (`own_schema.sql`)."""
LOG_NAME = f"{DATABASE_NAME}-wal"


class SqliteStore(StoreVerbs):
    """All verbs on one file. Made by `open_store`."""

    is_shared = False

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
        super().__init__(
            lock=lock,
            writer=writer,
            readers=readers,
            counts=writer,
            context=context,
            ways=DatabaseWays(
                engine=apsw.sqlite_lib_version(),
                match=_match,
                forget_log=lambda: to_thread.run_sync(forget_log, path),
            ),
            warnings=warnings,
            witness=witness,
        )
        self._writer = writer
        self.backups = backups

    @property
    def figures(self) -> None:
        """A file has no server to tell of."""
        return None

    @property
    def reserve_bytes(self) -> int:
        """What is kept back for a full disk; 0 while it is used."""
        return self._writer.reserve_bytes

    def listen(self) -> None:
        """No other process writes to the file."""

    async def _stop_own(self) -> None:
        with CancelScope(shield=True):
            await to_thread.run_sync(self.backups.stop)


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
            yield f"{held} held: `koboshi outbox release` sends what is held"


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


def _match(words: tuple[str, ...]) -> tuple[str, ...]:
    """In quotes nothing is an operator. The last word may be half typed."""
    exact = " ".join(f'"{word}"' for word in words)
    return (f"{exact} *",) if len(words[-1]) <= PREFIX_MAX else (exact, f"{exact} *")
