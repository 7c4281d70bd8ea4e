"""The outbox: what is owed is sent by one worker at a time, in order, and settled once."""

from typing import assert_never

from koboshi.domain.errors import Fenced
from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, WorkerId
from koboshi.domain.outbox import (
    HELD_MS,
    Delivery,
    DeliveryChange,
    DeliveryState,
    Near,
    Postpone,
    Reroute,
    Settle,
)
from koboshi.domain.route import Route
from koboshi.ports.wakeups import JOURNAL, OUTBOX
from koboshi.stores.sqlite.ground import Ground
from koboshi.stores.sqlite.reader import Readers
from koboshi.stores.sqlite.rows import delivery_of, file_of, number, text
from koboshi.stores.sqlite.sessions import move_session
from koboshi.stores.sqlite.transaction import Reading, Row, Transaction, Value
from koboshi.stores.sqlite.writer import Writer

NEAR_MAX = 50
UNSURE_MS = 48 * 3_600_000
"""Longer than anything stays owed."""
BY_OPERATOR = "dropped by the operator"


class SqliteOutbox:
    def __init__(self, writer: Writer, readers: Readers, ground: Ground) -> None:
        self._writer = writer
        self._readers = readers
        self._ground = ground

    async def due(self, after: DeliveryId) -> tuple[tuple[DeliveryId, SessionId, Route], ...]:
        def look(tx: Reading) -> tuple[tuple[DeliveryId, SessionId, Route], ...]:
            rows = (
                tx.rows("deliveries_due_new", after=after)
                if after
                else tx.rows("deliveries_due_all")
            )
            return tuple(
                (
                    DeliveryId(number(row[0])),
                    SessionId(number(row[1])),
                    Route(
                        channel=ChannelName(text(row[2])), chat=text(row[3]), thread=text(row[4])
                    ),
                )
                for row in rows
            )

        return await self._readers.read(look)

    async def claim(self, session_id: SessionId, worker_id: WorkerId) -> Delivery | int | None:
        return await self._writer.write(
            "outbox.claim", lambda tx: _claim(tx, session_id, worker_id)
        )

    async def near(self, delivery: Delivery) -> Near:
        def look(tx: Reading) -> Near:
            place = {"channel": delivery.route.channel, "chat": delivery.route.chat}
            this = {"session_id": delivery.session_id, "delivery_id": delivery.delivery_id}
            created_ms, since_ms = delivery.created_ms, tx.now_ms - UNSURE_MS
            around: dict[str, Value] = {**place, **this, "created_ms": created_ms}
            rows = tx.rows("chat_known", **around, limit=NEAR_MAX)
            unsure = tx.number("chat_unsure_count", **around, since_ms=since_ms)
            # Where so many came after it, there may be more, which we would take for this one.
            is_crowded = len(rows) == NEAR_MAX and not any(row[1] for row in rows)
            return Near(
                before=(delivery.anchor, *(text(row[0]) for row in rows if row[1])),
                known=tuple(text(row[0]) for row in rows if not row[1]),
                is_alone=not unsure and not is_crowded,
            )

        return await self._readers.read(look)

    async def files_owed(self) -> frozenset[str]:
        rows = await self._readers.read(lambda tx: tx.rows("deliveries_with_file"))
        return frozenset(file_of(row[0]).path for row in rows)

    async def settle(self, delivery: Delivery, worker_id: WorkerId, change: DeliveryChange) -> bool:
        return await self._writer.write(
            "outbox.settle", lambda tx: _settle(tx, delivery, worker_id, change)
        )

    async def label(self, delivery: Delivery, worker_id: WorkerId) -> None:
        def operation(tx: Transaction) -> None:
            touched = tx.change(
                "delivery_label", delivery_id=delivery.delivery_id, worker_id=worker_id
            )
            _check(touched, delivery)

        await self._writer.write("outbox.label", operation)

    async def retry(self, delivery_id: DeliveryId) -> DeliveryId | None:
        return await self._writer.write("outbox.retry", lambda tx: _retry(tx, delivery_id))

    async def release(self, delivery_id: DeliveryId | None) -> int:
        return await self._writer.write("outbox.release", lambda tx: _release(tx, delivery_id))

    async def drop(self, delivery_id: DeliveryId) -> bool:
        return await self._writer.write(
            "outbox.drop", lambda tx: _drop(tx, delivery_id, self._ground.worker_id)
        )


def _claim(tx: Transaction, session_id: SessionId, worker_id: WorkerId) -> Delivery | int | None:
    row = tx.row("delivery_head", session_id=session_id)
    if row is None or row[14] == DeliveryState.DRAFT:
        return None
    is_left = row[14] == DeliveryState.SENDING
    if is_left and row[16] == worker_id:
        return None
    wait_ms = max(number(row[15]) if not is_left else 0, _quiet_until(tx, row)) - tx.now_ms
    if wait_ms > 0:
        return wait_ms
    is_ambiguous = is_left or bool(row[12])
    tx.change(
        "delivery_send",
        delivery_id=row[0],
        worker_id=worker_id,
        ambiguous=int(is_ambiguous),
        now=tx.now_ms,
    )
    # What has its label was looked for before it got it; what was sent since was not taken.
    is_open = is_left or (is_ambiguous and not row[13])
    return delivery_of(row, is_ambiguous=is_open)


def _quiet_until(tx: Transaction, row: Row) -> int:
    quiet = tx.row("quiet_until", channel=row[17], chat=row[18])
    return 0 if quiet is None else number(quiet[0])


def _settle(
    tx: Transaction, delivery: Delivery, worker_id: WorkerId, change: DeliveryChange
) -> bool:
    delivery_id = delivery.delivery_id
    tx.hints.add(JOURNAL)
    match change:
        case Settle(state=state, platform_id=platform_id, reason=reason):
            touched = tx.change(
                "delivery_settle",
                delivery_id=delivery_id,
                worker_id=worker_id,
                state=state,
                platform_id=platform_id,
                reason=reason,
                now=tx.now_ms,
            )
            _check(touched, delivery)
            if delivery.turn_id is not None:
                tx.change(
                    "turn_settle",
                    turn_id=delivery.turn_id,
                    session_id=delivery.session_id,
                    now=tx.now_ms,
                )
        case Postpone(not_before_ms=not_before_ms, is_ambiguous=is_ambiguous, reason=reason):
            _postpone(tx, delivery, worker_id, not_before_ms, is_ambiguous, reason)
            if change.is_chat_wide:
                session_id = delivery.session_id
                tx.change("quiet_set", session_id=session_id, until_ms=not_before_ms)
        case Reroute(chat=chat):
            reason = f"the chat moved to {chat}"
            _postpone(tx, delivery, worker_id, tx.now_ms, delivery.may_be_there, reason)
            move_session(tx, delivery.session_id, chat)
        case _:
            assert_never(change)
    return tx.row("delivery_head", session_id=delivery.session_id) is not None


def _retry(tx: Transaction, delivery_id: DeliveryId) -> DeliveryId | None:
    tx.hints.add(OUTBOX)
    if tx.change("delivery_hasten", delivery_id=delivery_id, now=tx.now_ms):
        return delivery_id
    # A settled row never changes: the new one is known by its cause, and there is one for each.
    tx.change("delivery_again", delivery_id=delivery_id, now=tx.now_ms)
    row = tx.row("delivery_retried", delivery_id=delivery_id)
    return None if row is None else DeliveryId(number(row[0]))


def _release(tx: Transaction, delivery_id: DeliveryId | None) -> int:
    tx.hints.add(OUTBOX)
    released = tx.change(
        "deliveries_release", delivery_id=delivery_id, held_ms=HELD_MS, now=tx.now_ms
    )
    tx.change("gaps_settle", held_ms=HELD_MS, now=tx.now_ms)
    return released


def _drop(tx: Transaction, delivery_id: DeliveryId, worker_id: WorkerId | None) -> bool:
    row = tx.row(
        "delivery_drop",
        delivery_id=delivery_id,
        worker_id=worker_id,
        reason=BY_OPERATOR,
        now=tx.now_ms,
    )
    if row is None:
        return False
    tx.change("gaps_settle", held_ms=HELD_MS, now=tx.now_ms)
    # What stands behind it is due now, and a turn that owed nothing else is done.
    tx.hints.update((OUTBOX, JOURNAL))
    if row[1] is not None:
        tx.change("turn_settle", session_id=row[0], turn_id=row[1], now=tx.now_ms)
    return True


def _postpone(
    tx: Transaction,
    delivery: Delivery,
    worker_id: WorkerId,
    not_before_ms: int,
    is_ambiguous: bool,
    reason: str,
) -> None:
    touched = tx.change(
        "delivery_postpone",
        delivery_id=delivery.delivery_id,
        worker_id=worker_id,
        not_before_ms=not_before_ms,
        ambiguous=int(is_ambiguous),
        reason=reason,
        now=tx.now_ms,
    )
    _check(touched, delivery)
    tx.hints.add(OUTBOX)


def _check(touched: int, delivery: Delivery) -> None:
    if not touched:
        raise Fenced(f"delivery {delivery.delivery_id} is no longer being sent by this worker")
