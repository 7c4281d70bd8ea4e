"""One row per boot."""

from typing import Protocol

from koboshi.domain import phrases
from koboshi.domain.burial import LifeSign
from koboshi.domain.errors import NodeTaken
from koboshi.domain.ids import EntryId, SessionId, WorkerId
from koboshi.domain.outbox import DeliveryEvent
from koboshi.domain.witness import Witness
from koboshi.domain.worker import MEMORY_MS_MAX, NO_KILLS, EndedHow, MemoryKills, Worker
from koboshi.kernel.clocks import cap_waits, come_back
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_number, first_text, number, text
from koboshi.kernel.enqueue import enqueue_delivery_once
from koboshi.kernel.keys import lock, lock_session
from koboshi.kernel.moves import move
from koboshi.kernel.record import ask_restart
from koboshi.kernel.rows import read_entry, worker_of
from koboshi.kernel.transaction import Readers, Row, Transaction, Writer
from koboshi.ports.wakeups import OUTBOX, TURNS

BURY = "workers.bury"
"""A burial is a transaction of its own: a store commits it with no other verb."""


class TellsWitness(Protocol):
    """Keeps, beside the database, how far the database has come."""

    async def tell(self, witness: Witness) -> None:
        """Store the witness. If that fails the old one stays, which is still true."""
        ...


class WorkerVerbs:
    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        context: VerbContext,
        witness: TellsWitness | None = None,
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context
        self._witness = witness
        self._birth = ""
        self.beaten_ms = 0

    async def start(
        self, host: str, pid: int, birth: str, version: str, kills: MemoryKills = NO_KILLS
    ) -> Worker:
        home, node = self._context.home, self._context.node or host
        is_named = bool(self._context.node)

        def operation(tx: Transaction) -> Worker:
            if is_named and tx.row("node_taken", node=node, home=home) is not None:
                raise NodeTaken(node)
            if tx.row("home_beside", home=home) is None:
                come_back(tx)  # else others have looked at the clock all the time
            mark_dead(tx, home, host, birth, kills)
            worker_id = tx.insert(
                "worker_insert",
                host=host,
                pid=pid,
                birth=birth,
                version=version,
                now=tx.now_ms,
                node=node,
                home=home,
                fingerprint=self._context.fingerprint,
                **_counts(kills),
            )
            tx.change("worker_found_dead", worker_id=worker_id)
            _abandon_farewells(tx)
            row = tx.row("worker_by_id", worker_id=worker_id)
            assert row is not None
            return worker_of(row)

        worker = await self._writer.write("workers.start", operation)
        self._context.worker_id, self._context.node = worker.worker_id, node
        self._birth = birth
        return worker

    async def end_left(self, host: str, birth: str, kills: MemoryKills = NO_KILLS) -> None:
        home = self._context.home
        if await self._readers.read(lambda tx: tx.row("worker_left", home=home)) is None:
            return
        await self._writer.write(
            "workers.end_left", lambda tx: mark_dead(tx, home, host, birth, kills)
        )

    async def beat(self, worker_id: WorkerId, kills: MemoryKills = NO_KILLS) -> bool:
        counts = _counts(kills)

        def operation(tx: Transaction) -> tuple[bool, Witness | None, int]:
            row = tx.row("worker_beat", worker_id=worker_id, now=tx.now_ms, **counts)
            cap_waits(tx)
            return bool(first_number(row)), self._seen(tx, worker_id), tx.now_ms

        is_restart_asked, seen, self.beaten_ms = await self._writer.write("workers.beat", operation)
        if self._witness is not None and seen is not None:
            # After the commit, so that it never tells of more than is durable.
            await self._witness.tell(seen)
        return is_restart_asked

    def _seen(self, tx: Transaction, worker_id: WorkerId) -> Witness | None:
        """The witness of this boot; None for another worker, or without a journal line."""
        if worker_id != self._context.worker_id:
            return None
        line = first_number(tx.row("journal_newest_line"))
        if line is None:
            return None
        return Witness(journal=line, boot=worker_id, birth=self._birth, at_ms=tx.now_ms)

    async def others(self, worker_id: WorkerId) -> tuple[LifeSign, ...]:
        rows = await self._readers.read(lambda tx: tx.rows("workers_alive", worker_id=worker_id))
        return tuple(map(_sign_of, rows))

    async def is_served_beside(self) -> bool:
        worker_id = self._context.worker_id
        row = await self._readers.read(
            lambda tx: tx.row("worker_serves_beside", worker_id=worker_id)
        )
        return row is not None

    async def bury(self, sign: LifeSign) -> bool:
        values = {"heartbeat_ms": sign.heartbeat_ms, "batch": sign.batch}

        def operation(tx: Transaction) -> bool:
            if not tx.change("worker_bury", worker_id=sign.worker_id, **values):
                return False
            tx.change("worker_died_over", worker_id=sign.worker_id)
            tx.hints.update((TURNS, OUTBOX))
            return True

        is_buried = await self._writer.write(BURY, operation)
        if is_buried:
            # By itself: a burial waits for no chat.
            await self._writer.write("workers.farewells", _abandon_farewells)
        return is_buried

    async def request_restart(self, worker_id: WorkerId, by: str) -> None:
        await self._writer.write(
            "workers.request_restart", lambda tx: ask_restart(tx, worker_id, by)
        )

    async def begin_drain(self, worker_id: WorkerId) -> None:
        def operation(tx: Transaction) -> None:
            tx.change("worker_drain", worker_id=worker_id)
            if tx.row("worker_serves_beside", worker_id=worker_id) is not None:
                return  # the work goes on there, and there is nothing to be told
            for session_id, anchor in tx.rows("sessions_at_work", worker_id=worker_id):
                session = SessionId(number(session_id))
                lock_session(tx, session)
                cause, words = f"drain:{worker_id}", phrases.restarting()
                enqueue_delivery_once(tx, session, cause, words, anchor=text(anchor))

        await self._writer.write("workers.begin_drain", operation)
        self._context.is_draining = True

    async def report(self, worker_id: WorkerId, words: str, back: str) -> None:
        def operation(tx: Transaction) -> None:
            tx.change("worker_report", worker_id=worker_id, report=words)
            home = self._context.home
            row = tx.row("worker_last_restart", worker_id=worker_id, home=home)
            asked_by = first_text(row) or ""
            if asked_by.startswith("entry:"):
                _answer_command(tx, EntryId(int(asked_by.removeprefix("entry:"))), back)

        await self._writer.write("workers.report", operation)

    async def restarted_by(self, by: str) -> Worker | None:
        row = await self._readers.read(lambda tx: tx.row("worker_restarted_by", by=by))
        return None if row is None else worker_of(row)

    async def end(self, worker_id: WorkerId, how: EndedHow) -> None:
        await self._writer.write(
            "workers.end",
            lambda tx: tx.change("worker_end", worker_id=worker_id, how=how, now=tx.now_ms),
        )


def _sign_of(row: Row) -> LifeSign:
    worker_id, node, heartbeat_ms, batch = row
    return LifeSign(
        worker_id=WorkerId(number(worker_id)),
        node=text(node),
        heartbeat_ms=number(heartbeat_ms),
        batch=number(batch),
    )


def mark_dead(tx: Transaction, home: str, host: str, birth: str, kills: MemoryKills) -> None:
    """End the workers of a home that have no end: this process owns the home now."""
    boot = birth[: birth.find("/") + 1]
    soon_ms = tx.now_ms - MEMORY_MS_MAX
    found: dict[str, str | int | None] = {"host": host, "boot": boot, "soon_ms": soon_ms}
    tx.change("workers_mark_dead", home=home, **found, **_counts(kills))


def _abandon_farewells(tx: Transaction) -> None:
    for delivery_id, key in tx.rows("farewells_of_the_gone"):
        lock(tx, number(key))
        move(tx, "farewell_abandon", DeliveryEvent.OUTLIVED, delivery_id=delivery_id, now=tx.now_ms)


def _counts(kills: MemoryKills) -> dict[str, str | int | None]:
    return {
        "memory_group": kills.group,
        "group_kills": kills.in_group,
        "machine_kills": kills.on_machine,
    }


def _answer_command(tx: Transaction, entry_id: EntryId, words: str) -> None:
    """Answer the command that asked for a restart, once, in its thread."""
    asked = read_entry(tx, entry_id)
    if asked is None or asked.session_id is None:
        return
    session_id = asked.session_id
    lock_session(tx, session_id)
    enqueue_delivery_once(tx, session_id, f"restarted:{entry_id}", words, anchor="")
