"""Holding deliveries at a start, before anything can be sent: the database went back in time, or
the operator asked for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from koboshi.domain.errors import StoreFailed
from koboshi.domain.witness import Reached, Witness, gap_words, is_behind
from koboshi.kernel.decode import number, text
from koboshi.kernel.deliveries import hold_after_going_back, hold_outbox
from koboshi.kernel.rows import worker_of
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.stores.faults import CrashPoint
from koboshi.stores.sqlite.quarantine import set_processes_aside
from koboshi.stores.sqlite.transaction import SqliteReading, SqliteTransaction
from koboshi.stores.sqlite.witness import read_witness


def notice_gap(
    home: Path, connection: apsw.Connection, now_ms: int, stamp: str, crash_point: CrashPoint
) -> str | None:
    """Hold deliveries if the database does not hold what its witness saw, and keep the words for
    the operator with it, in one transaction. Returns the words of a gap that the operator has not
    settled yet, noticed now or by an earlier start; None if there is none.

    The witness stays as it is. A start that is killed in here leaves it to the next one to notice.
    """
    witness = read_witness(home)
    with _transaction(connection, now_ms) as tx:
        is_news = witness is not None and _hold_for(witness, tx)
        if is_news:
            # Before the commit: a start after a kill in between finds them moved and notices again.
            set_processes_aside(home, tx.number("newest_process"), stamp)
            crash_point.reach("witness.hold", "before")
        gap = tx.row("gap_open")
    if is_news:
        crash_point.reach("witness.hold", "after")
    return None if gap is None else text(gap[0])


def _hold_for(witness: Witness, tx: Transaction) -> bool:
    """Whether the database is behind the witness, and no earlier start has seen to it."""
    reached = _reached(tx, witness)
    if not is_behind(witness, reached):
        return False
    cause = f"witness:{witness.boot}/{witness.birth}/{witness.journal}"
    words = gap_words(witness, reached)
    if not tx.change("hold_insert", cause=cause, gap=words, now=tx.now_ms):
        return False
    hold_after_going_back(tx, "held: the database went back")
    return True


def hold_as_asked(connection: apsw.Connection, now_ms: int, asked_by: str) -> int:
    """Hold owed deliveries, once for each who asked. Returns how many deliveries are held now."""
    with _transaction(connection, now_ms) as tx:
        if tx.change("hold_insert", cause=f"asked:{asked_by}", gap=None, now=now_ms):
            hold_outbox(tx, "held: asked for at the start")
        return tx.number("count_held")


def witness_of(connection: apsw.Connection) -> Witness | None:
    """What a witness of the database as it is now would tell; None before its first boot."""
    tx = SqliteReading(connection)
    line, worker = tx.row("journal_newest_line"), tx.row("worker_newest", limit=1)
    if line is None or worker is None:
        return None
    boot = worker_of(worker)
    return Witness(
        journal=number(line[0]), boot=boot.worker_id, birth=boot.birth, at_ms=number(line[1])
    )


def _reached(tx: Reading, witness: Witness) -> Reached:
    newest = tx.row("journal_newest_line")
    known = tx.row("worker_known", worker_id=witness.boot, birth=witness.birth)
    return Reached(
        journal=0 if newest is None else number(newest[0]),
        at_ms=0 if newest is None else number(newest[1]),
        knows_boot=known is not None,
    )


@contextmanager
def _transaction(connection: apsw.Connection, now_ms: int) -> Iterator[Transaction]:
    """All of it, or nothing. Raises StoreFailed where nothing can be written now."""
    tx = SqliteTransaction(connection)
    tx.now_ms = now_ms
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield tx
        connection.execute("COMMIT")
    except (apsw.FullError, apsw.IOError, apsw.BusyError, apsw.LockedError) as error:
        raise StoreFailed(f"waiting deliveries cannot be held now: {error}") from error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
