"""`koboshi restore` on PostgreSQL: a backup becomes the rows of an empty database."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import apsw

from koboshi.ports.clock import Clock
from koboshi.stores.lock import lock_now
from koboshi.stores.marks import MoveState
from koboshi.stores.moving import server as server_end
from koboshi.stores.moving.file import refuse_difference
from koboshi.stores.moving.table_rows import (
    carried_in_file,
    carried_in_server,
    into_server,
    set_sequences,
)
from koboshi.stores.sqlite.backup_check import prove
from koboshi.stores.sqlite.file import DATABASE_NAME
from koboshi.stores.sqlite.quarantine import copy_held, set_processes_aside
from koboshi.stores.sqlite.restoring import Restored
from koboshi.stores.sqlite.transaction import SqliteReading

COPY_NAME = f"{DATABASE_NAME}.to-server"


def restore_to_server(
    home: Path,
    backup: Path,
    url: str,
    *,
    clock: Clock,
    accepts_loss: bool,
    go_on: Callable[[], bool] = lambda: True,
    prepare: Callable[[], None] = lambda: None,
) -> Restored:
    """Put the rows of the backup into an empty database: all of them, or none. What they owe to
    people is held. `prepare` makes the home, and is called for a whole backup only.

    Raises HomeHeld while a gateway runs, StoreRefused for a file that is no whole backup and for a
    database with rows that count, and StoreFailed where the server cannot be used now.
    """
    proven = prove(backup, go_on)
    prepare()
    lock = lock_now(home, clock=clock, who="koboshi restore")
    copy = home / COPY_NAME
    try:
        copy.unlink(missing_ok=True)
        copy_held(backup, copy)
        file = apsw.Connection(str(copy))
        try:
            looking = SqliteReading(file)
            states = {
                str(state): int(str(count)) for state, count in looking.rows("turns_alive_by_state")
            }
            held, newest = looking.number("count_held"), looking.number("newest_process")
            with server_end.connected(url) as server:
                server_end.check_safety(server, accepts_loss=accepts_loss)
                server_end.take_schema(server)
                there = server_end.mark_of(server)
                if there is None or there.state is MoveState.LIVE:
                    server_end.refuse_use(server)
                server_end.begin_empty(server)
                into_server(server, file, lambda _table, _rows: None)
                set_sequences(server)
                server_end.complete(server)
                refuse_difference(dict(carried_in_server(server)), dict(carried_in_file(file)))
                # Before the commit: the later ids will be those of others.
                at = datetime.fromtimestamp(clock.now_ms() / 1000, tz=UTC)
                set_processes_aside(home, newest, f"{at:%Y%m%dT%H%M%S%f}")
                server.commit()
        finally:
            file.close()
    finally:
        copy.unlink(missing_ok=True)
        lock.release()
    return Restored(kept=None, held=held, open_turns=states, rows=proven.rows)
