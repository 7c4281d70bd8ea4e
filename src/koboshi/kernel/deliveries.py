"""The outbox: what is owed is sent by one worker at a time, in order, and settled once."""

from typing import assert_never

from koboshi.domain.errors import Fenced
from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, TurnId, WorkerId
from koboshi.domain.outbox import (
    STRIKES_MAX,
    Delivery,
    DeliveryChange,
    DeliveryEvent,
    DeliveryLimits,
    DeliveryState,
    GivenUp,
    Near,
    Postpone,
    Reroute,
    Settle,
    ending_of,
)
from koboshi.domain.route import Route
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import delivery_of, file_of, maybe_number, number, text
from koboshi.kernel.keys import lock_found, of_sessions
from koboshi.kernel.moves import move, move_from, move_one
from koboshi.kernel.notices import tell_of_loss
from koboshi.kernel.read import is_gone
from koboshi.kernel.sessions import move_session, settle_turn
from koboshi.kernel.transaction import Readers, Reading, Row, Transaction, Value, Writer
from koboshi.ports.outbox import Due
from koboshi.ports.wakeups import JOURNAL, OUTBOX, OUTBOX_SOONER

NEAR_MAX = 50
UNSURE_MS = 48 * 3_600_000
"""Longer than anything stays owed."""
BY_OPERATOR = "dropped by the operator"
LINES_LOOKED_AT = 20_000
"""How far back in the journal a sign is looked for that a channel works."""


class DeliveryVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    async def due(self, after: DeliveryId) -> tuple[Due, ...]:
        def look(tx: Reading) -> tuple[Due, ...]:
            rows = (
                tx.rows("deliveries_due_new", after=after)
                if after
                else tx.rows("deliveries_due_all")
            )
            return tuple(_due_of(row, tx.now_ms) for row in rows)

        return await self._readers.read(look)

    async def claim(
        self,
        session_id: SessionId,
        worker_id: WorkerId,
        *,
        is_up: bool = True,
        limits: DeliveryLimits = DeliveryLimits(),  # noqa: B008  (frozen)
    ) -> Delivery | GivenUp | int | None:
        return await self._writer.write(
            "outbox.claim",
            lambda tx: _claim(tx, session_id, worker_id, limits, is_up=is_up),
            of_sessions(session_id),
        )

    async def near(self, delivery: Delivery) -> Near:
        def look(tx: Reading) -> Near:
            place = {"channel": delivery.route.channel, "chat": delivery.route.chat}
            this = {"session_id": delivery.session_id, "delivery_id": delivery.delivery_id}
            begun = tx.row("delivery_begun", delivery_id=delivery.delivery_id)
            assert begun is not None
            begun_ms, sent_seq = number(begun[0]), number(begun[1])
            around: dict[str, Value] = {
                **place,
                **this,
                "begun_ms": begun_ms,
                "sent_seq": sent_seq,
            }
            rows = tx.rows("chat_known", **around, limit=NEAR_MAX)
            unsure = tx.number("chat_unsure_count", **around, since_ms=begun_ms - UNSURE_MS)
            # Where so many came after it, there may be more, which we would take for this one.
            is_crowded = len(rows) == NEAR_MAX and not any(row[1] for row in rows)
            return Near(
                before=(delivery.anchor, *(text(row[0]) for row in rows if row[1])),
                known=tuple(text(row[0]) for row in rows if not row[1]),
                is_alone=not unsure and not is_crowded,
            )

        return await self._readers.read(look)

    async def files_kept(self) -> frozenset[str]:
        rows = await self._readers.read(lambda tx: tx.rows("deliveries_with_file"))
        return frozenset(file_of(row[0]).path for row in rows)

    async def settle(self, delivery: Delivery, worker_id: WorkerId, change: DeliveryChange) -> bool:
        return await self._writer.write(
            "outbox.settle",
            lambda tx: _settle(tx, delivery, worker_id, change),
            of_sessions(delivery.session_id),
        )

    async def label(
        self, delivery: Delivery, worker_id: WorkerId, *, may_be_duplicate: bool = True
    ) -> None:
        def operation(tx: Transaction) -> None:
            lock_found(tx, "delivery_key", delivery_id=delivery.delivery_id)
            touched = tx.change(
                "delivery_label",
                delivery_id=delivery.delivery_id,
                worker_id=worker_id,
                labelled=int(may_be_duplicate),
            )
            _check(touched, delivery)

        await self._writer.write("outbox.label", operation, of_sessions(delivery.session_id))

    async def hasten(self, channel: ChannelName) -> int:
        return await self._writer.write("outbox.hasten", lambda tx: _hasten(tx, channel))

    async def retry(self, delivery_id: DeliveryId) -> DeliveryId | None:
        return await self._writer.write("outbox.retry", lambda tx: _retry(tx, delivery_id))

    async def release(self, delivery_id: DeliveryId | None) -> int:
        return await self._writer.write("outbox.release", lambda tx: _release(tx, delivery_id))

    async def drop(self, delivery_id: DeliveryId) -> bool:
        return await self._writer.write("outbox.drop", lambda tx: _drop(tx, delivery_id))


def _due_of(row: Row, now_ms: int) -> Due:
    reply_ms = maybe_number(row[7])
    return Due(
        delivery_id=DeliveryId(number(row[0])),
        session_id=SessionId(number(row[1])),
        route=Route(channel=ChannelName(text(row[2])), chat=text(row[3]), thread=text(row[4])),
        wait_ms=max(0, number(row[5]) - now_ms),
        needs_channel=bool(row[6]),
        reply_wait_ms=None if reply_ms is None else max(0, reply_ms - now_ms),
    )


def _claim(
    tx: Transaction,
    session_id: SessionId,
    worker_id: WorkerId,
    limits: DeliveryLimits,
    *,
    is_up: bool,
) -> Delivery | GivenUp | int | None:
    row = tx.row("delivery_head", session_id=session_id)
    if row is None or row[14] == DeliveryState.DRAFT:
        return None
    is_left = row[14] == DeliveryState.SENDING
    if is_left and not is_gone(tx, WorkerId(number(row[16]))):
        return None  # its worker lives, and settles it
    quiet_ms = _quiet_until(tx, row) - tx.now_ms
    if quiet_ms > 0:
        return quiet_ms
    delivery = _delivery_at(tx, row, worker_id)
    wait_ms = 0 if is_left else number(row[15]) - tx.now_ms
    if wait_ms <= 0:
        ending = ending_of(delivery, limits)
        if ending is not None:
            return _give_up(tx, delivery, ending)
    if wait_ms > 0 or (delivery.needs_channel and not is_up):
        overtaking = tx.row("delivery_overtaking", session_id=session_id, now=tx.now_ms)
        if overtaking is None:
            return wait_ms if wait_ms > 0 else None
        delivery = _delivery_at(tx, overtaking, worker_id)
    move(
        tx,
        "delivery_send",
        DeliveryEvent.CLAIMED,
        delivery_id=delivery.delivery_id,
        worker_id=worker_id,
        ambiguous=int(delivery.is_ambiguous),
        now=tx.now_ms,
    )
    return delivery


def _delivery_at(tx: Transaction, row: Row, worker_id: WorkerId) -> Delivery:
    is_ambiguous = row[14] == DeliveryState.SENDING or bool(row[12])
    return delivery_of(row, is_ambiguous=is_ambiguous, now_ms=tx.now_ms, worker_id=worker_id)


def _give_up(tx: Transaction, delivery: Delivery, ending: Settle) -> GivenUp:
    """End a delivery that is not tried again, and tell the person where they are to know."""
    assert ending.reason is not None
    move(
        tx,
        "delivery_give_up",
        ending.event,
        delivery_id=delivery.delivery_id,
        reason=ending.reason,
        now=tx.now_ms,
    )
    tx.hints.add(JOURNAL)
    _settle_turn(tx, delivery)
    if ending.is_told:
        tell_of_loss(tx, delivery)
    return GivenUp(
        delivery_id=delivery.delivery_id,
        route=delivery.route,
        reason=ending.reason,
        is_told=ending.is_told,
    )


def _settle_turn(tx: Transaction, delivery: Delivery) -> None:
    if delivery.turn_id is not None:
        # A move may have brought what it owes to another session.
        lock_found(tx, "turn_key", turn_id=delivery.turn_id)
        settle_turn(tx, delivery.session_id, delivery.turn_id)


def _quiet_until(tx: Transaction, row: Row) -> int:
    quiet = tx.row("quiet_until", channel=row[17], chat=row[18])
    return 0 if quiet is None else number(quiet[0])


def _settle(
    tx: Transaction, delivery: Delivery, worker_id: WorkerId, change: DeliveryChange
) -> bool:
    delivery_id = delivery.delivery_id
    # A move may have brought it to another session since it was claimed.
    lock_found(tx, "delivery_key", delivery_id=delivery_id)
    tx.hints.add(JOURNAL)
    match change:
        case Settle(platform_id=platform_id, reason=reason):
            touched = move_from(
                tx,
                "delivery_settle",
                change.event,
                DeliveryState.SENDING,
                delivery_id=delivery_id,
                worker_id=worker_id,
                platform_id=platform_id,
                reason=reason,
                may_be_there=int(change.may_be_there),
                now=tx.now_ms,
            )
            _check(touched, delivery)
            _settle_turn(tx, delivery)
        case Postpone():
            _postpone(tx, delivery, worker_id, change)
            if change.is_chat_wide:
                session_id, wait_ms = delivery.session_id, change.wait_ms
                tx.change("quiet_set", session_id=session_id, wait_ms=wait_ms, now=tx.now_ms)
        case Reroute(chat=chat):
            follow = Postpone(
                wait_ms=0,
                is_ambiguous=delivery.is_ambiguous,
                reason=f"the chat moved to {chat}",
            )
            _postpone(tx, delivery, worker_id, follow)
            move_session(tx, delivery.session_id, chat)
        case _:
            assert_never(change)
    return tx.row("delivery_head", session_id=delivery.session_id) is not None


def _hasten(tx: Transaction, channel: ChannelName) -> int:
    lock_found(tx, "keys_to_hasten", channel=channel)
    return tx.change("deliveries_hasten", channel=channel)


def _retry(tx: Transaction, delivery_id: DeliveryId) -> DeliveryId | None:
    lock_found(tx, "delivery_key", delivery_id=delivery_id)
    tx.hints.update((OUTBOX, OUTBOX_SOONER))
    if tx.change("delivery_hasten", delivery_id=delivery_id, now=tx.now_ms):
        return delivery_id
    if _let_go(tx, delivery_id):
        return delivery_id
    # A settled row never changes: the new one is known by its cause, and there is one for each.
    tx.change("delivery_again", delivery_id=delivery_id, now=tx.now_ms)
    row = tx.row("delivery_retried", delivery_id=delivery_id)
    return None if row is None else DeliveryId(number(row[0]))


def _release(tx: Transaction, delivery_id: DeliveryId | None) -> int:
    tx.hints.update((OUTBOX, OUTBOX_SOONER))
    lock_found(tx, "keys_to_release", delivery_id=delivery_id)
    released = _let_go(tx, delivery_id)
    tx.change("gaps_settle", now=tx.now_ms)
    return released


def _let_go(tx: Transaction, delivery_id: DeliveryId | None) -> int:
    """What is held, one or all, is owed again."""
    values: dict[str, Value] = {"delivery_id": delivery_id, "now": tx.now_ms}
    return move(tx, "deliveries_release", DeliveryEvent.RELEASED, **values)


def hold_outbox(tx: Transaction, reason: str) -> None:
    """Nothing that is owed now is sent before the operator says so."""
    move(tx, "outbox_hold", DeliveryEvent.HELD, reason=reason)


def _drop(tx: Transaction, delivery_id: DeliveryId) -> bool:
    lock_found(tx, "delivery_key", delivery_id=delivery_id)
    row = move_one(
        tx,
        "delivery_drop",
        DeliveryEvent.DROPPED,
        delivery_id=delivery_id,
        reason=BY_OPERATOR,
        now=tx.now_ms,
    )
    if row is None:
        return False
    tx.change("gaps_settle", now=tx.now_ms)
    # What stands behind it is due now, and a turn that owed nothing else is done.
    tx.hints.update((OUTBOX, OUTBOX_SOONER, JOURNAL))
    if row[1] is not None:
        lock_found(tx, "turn_key", turn_id=row[1])
        settle_turn(tx, SessionId(number(row[0])), TurnId(number(row[1])))
    return True


def _postpone(tx: Transaction, delivery: Delivery, worker_id: WorkerId, change: Postpone) -> None:
    strike = int(_is_strike(tx, delivery, change))
    # One that is poisoned ends at once: its session waits behind it.
    wait_ms = 0 if strike and delivery.strikes + strike >= STRIKES_MAX else change.wait_ms
    touched = move_from(
        tx,
        "delivery_postpone",
        change.event,
        DeliveryState.SENDING,
        delivery_id=delivery.delivery_id,
        worker_id=worker_id,
        not_before_ms=0 if change.is_held else tx.now_ms + wait_ms,
        wait_ms=wait_ms,
        ambiguous=int(change.is_ambiguous),
        unsure=int(change.is_unsure),
        strike=strike,
        reason=change.reason,
        now=tx.now_ms,
    )
    _check(touched, delivery)
    tx.hints.add(OUTBOX)


def _is_strike(tx: Transaction, delivery: Delivery, change: Postpone) -> bool:
    """Whether the outcome is unknown although the channel works: it accepted another delivery since
    the last attempt. A platform that asks for patience is no sign against the message."""
    if not change.is_unsure or change.is_chat_wide:
        return False
    row = tx.row(
        "channel_accepted_lately",
        delivery_id=delivery.delivery_id,
        channel=delivery.route.channel,
        looked_at=LINES_LOOKED_AT,
    )
    return row is not None


def _check(touched: int, delivery: Delivery) -> None:
    if not touched:
        raise Fenced(f"delivery {delivery.delivery_id} is no longer being sent by this worker")
