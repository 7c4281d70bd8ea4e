"""`koboshi restore`: a backup takes the place of the database, which is kept."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from koboshi.domain.errors import StoreRefused
from koboshi.ports.clock import Clock
from koboshi.stores.faults import CrashPoint
from koboshi.stores.lock import take_lock
from koboshi.stores.sqlite.backup_check import prove
from koboshi.stores.sqlite.file import DATABASE_NAME, open_writer
from koboshi.stores.sqlite.holding import witness_of
from koboshi.stores.sqlite.quarantine import finish_restore, is_restoring, restore
from koboshi.stores.sqlite.transaction import SqliteReading
from koboshi.stores.sqlite.witness import write_witness


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    kept: str | None
    """The folder with what was there before; None if there was nothing."""
    held: int
    """Deliveries that wait until the operator releases or drops them."""
    open_turns: Mapping[str, int]
    """Turns that have not ended, by state: the next start judges them as after a crash."""
    rows: Mapping[str, int]


async def restore_backup(
    home: Path,
    backup: Path,
    *,
    clock: Clock,
    crash_at: str = "",
    go_on: Callable[[], bool] = lambda: True,
    prepare: Callable[[], None] = lambda: None,
) -> Restored:
    """Own the home for a moment and put a copy of the backup into it. `prepare` makes the home,
    and is called for a whole backup only.

    Raises HomeHeld while a gateway runs, StoreRefused for a file that is no whole backup; then
    nothing was changed.
    """
    crash_point = CrashPoint(crash_at)
    path = home / DATABASE_NAME
    if path.exists() and path.samefile(backup):
        raise StoreRefused(f"{backup} is the database itself, and no backup")
    proven = prove(backup, go_on)
    prepare()
    lock = await take_lock(home, wait_seconds=0, clock=clock, who="koboshi restore")
    try:
        at = datetime.fromtimestamp(clock.now_ms() / 1000, tz=UTC)
        stamp = f"{at:%Y%m%dT%H%M%S%f}"
        if is_restoring(home):
            # An earlier one died half way. Until its copy is in place it is all there is.
            finish_restore(home, f"{stamp}-earlier")
        kept = restore(home, backup, stamp, crash_point)
        connection = open_writer(path)
        looking = SqliteReading(connection)
        states = {
            str(state): int(str(count)) for state, count in looking.rows("turns_alive_by_state")
        }
        held = looking.number("count_held")
        witness = witness_of(connection)
        connection.close()
        if witness is not None:
            with suppress(OSError):  # without one, the next heartbeat writes it
                write_witness(home, witness)
    finally:
        lock.release()
    return Restored(
        kept=None if kept is None else str(kept), held=held, open_turns=states, rows=proven.rows
    )
