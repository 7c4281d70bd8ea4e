"""The outbox: a delivery is sent by one worker at a time, in order, and settled once.

Theory of operation. A delivery is committed as OWED together with the fact that it tells. A worker
claims the oldest delivery of a session (SENDING, one more attempt), sends it, and settles it. So at
every moment:

* An OWED delivery that is not ambiguous has certainly not been sent. A delivery that is SENDING
  under a worker that is gone has an unknown outcome, and so has an ambiguous one. It is looked for
  or repeated with a label. It is never repeated or dropped silently.
* A SENDING delivery belongs to one worker. Its settlement repeats the worker in the condition and
  raises `Fenced` if it touches no row.
* The oldest unsettled delivery of a session is next. A reply to a command overtakes one that must
  wait; the parts of a text do not overtake each other. A held delivery holds up no other one.
* A settled delivery never changes; a trigger refuses it. A retry is a new row whose cause names the
  old one, so there is one.
* The settlement of the last delivery of an answered turn closes the turn in the same transaction.
* The order of the commits says what came first, not the clock: `tried_seq`, `sent_seq` and
  `settled_seq` are lines of the journal.

`domain/outbox.py` decides what an outcome means. `runtime/deliver.py` sends.
"""

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
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import file_of, first_number, number, text, texts
from koboshi.kernel.delivery_rows import due_of, read_owed
from koboshi.kernel.keys import lock_found, of_sessions
from koboshi.kernel.left_sends import let_go_of
from koboshi.kernel.moved_chats import move_session
from koboshi.kernel.moves import move, move_from, move_one
from koboshi.kernel.notices import tell_of_loss
from koboshi.kernel.own_threads import settle_beginning
from koboshi.kernel.record import settle_turn
from koboshi.kernel.rows import is_gone
from koboshi.kernel.transaction import Readers, Reading, Transaction, Value, Writer
from koboshi.ports.outbox import Due
from koboshi.ports.wakeups import JOURNAL, OUTBOX, OUTBOX_SOONER

NEAR_MAX = 50
BESIDE_MS = 200
"""Until a chat is looked at again in which another gateway sends something."""
UNSURE_MS = 48 * 3_600_000
"""Longer than a delivery stays owed."""
BY_OPERATOR = "dropped by the operator"
LINES_LOOKED_AT = 20_000
"""How many journal lines are searched for a sign that a channel works."""


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
            return tuple(due_of(row, tx.now_ms) for row in rows)

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
            lambda tx: _claim(tx, self._context, session_id, worker_id, limits, is_up=is_up),
            of_sessions(session_id),
        )

    async def near(self, delivery: Delivery) -> Near:
        def look(tx: Reading) -> Near:
            place = {"channel": delivery.route.channel, "chat": delivery.route.chat}
            this = {"session_id": delivery.session_id, "delivery_id": delivery.delivery_id}
            ((begun_ms, sent_seq),) = tx.rows("delivery_begun", delivery_id=delivery.delivery_id)
            around: dict[str, Value] = {
                **place,
                **this,
                "begun_ms": begun_ms,
                "sent_seq": sent_seq,
            }
            rows = tx.rows("chat_known", **around, limit=NEAR_MAX)
            since_ms = number(begun_ms) - UNSURE_MS
            unsure = tx.number("chat_unsure_count", **around, since_ms=since_ms)
            before = [text(platform_id) for platform_id, is_before in rows if is_before]
            # With so many later messages there may be more, which would be taken for this one.
            is_crowded = len(rows) == NEAR_MAX and not before
            return Near(
                before=(delivery.anchor, *before),
                known=tuple(text(platform_id) for platform_id, is_before in rows if not is_before),
                is_alone=not unsure and not is_crowded,
            )

        return await self._readers.read(look)

    async def files_kept(self) -> frozenset[str]:
        rows = await self._readers.read(lambda tx: tx.rows("deliveries_with_file"))
        return frozenset(file_of(file).path for file in texts(rows))

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

    async def let_go(self, worker_id: WorkerId, under_way: frozenset[DeliveryId]) -> int:
        return await self._writer.write(
            "outbox.let_go", lambda tx: let_go_of(tx, worker_id, under_way)
        )

    async def hasten(self, channel: ChannelName) -> int:
        return await self._writer.write("outbox.hasten", lambda tx: _hasten(tx, channel))

    async def retry(self, delivery_id: DeliveryId) -> DeliveryId | None:
        return await self._writer.write("outbox.retry", lambda tx: _retry(tx, delivery_id))

    async def release(self, delivery_id: DeliveryId | None) -> int:
        return await self._writer.write("outbox.release", lambda tx: _release(tx, delivery_id))

    async def drop(self, delivery_id: DeliveryId) -> bool:
        return await self._writer.write("outbox.drop", lambda tx: _drop(tx, delivery_id))


def _claim(
    tx: Transaction,
    context: VerbContext,
    session_id: SessionId,
    worker_id: WorkerId,
    limits: DeliveryLimits,
    *,
    is_up: bool,
) -> Delivery | GivenUp | int | None:
    head = read_owed(tx, "delivery_head", session_id=session_id)
    if head is None or head.state == DeliveryState.DRAFT:
        return None
    is_left = head.state == DeliveryState.SENDING
    if is_left and not is_gone(tx, head.worker_id):
        return None  # its worker lives, and settles it
    if context.is_shared:
        beside: dict[str, Value] = {"channel": head.channel, "chat": head.chat}
        if tx.row("send_has_to_wait", worker_id=worker_id, **beside) is not None:
            return BESIDE_MS
    if head.until_ms is not None and head.until_ms > tx.now_ms:
        return head.until_ms - tx.now_ms
    send_id = head.random or _make_send_id(tx, context)
    delivery = head.attempt(worker_id, tx.now_ms, send_id)
    wait_ms = 0 if is_left else head.not_before_ms - tx.now_ms
    if wait_ms <= 0:
        ending = ending_of(delivery, limits)
        if ending is not None:
            return _give_up(tx, delivery, ending)
    if wait_ms > 0 or (delivery.needs_channel and not is_up):
        overtaking = read_owed(tx, "delivery_overtaking", session_id=session_id, now=tx.now_ms)
        if overtaking is None:
            return wait_ms if wait_ms > 0 else None
        delivery = overtaking.attempt(worker_id, tx.now_ms, send_id)
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


def _make_send_id(tx: Transaction, context: VerbContext) -> str:
    """The random part of send keys. It is stored with the first claim that needs it, so a repeat
    after a crash has the same key."""
    made = context.new_send_id()
    tx.change("send_id_make", random=made)
    return made


def _give_up(tx: Transaction, delivery: Delivery, ending: Settle) -> GivenUp:
    """End a delivery that is not tried again, and tell the person if the ending says so."""
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
    settle_beginning(tx, delivery, ending)
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
        # The delivery may have moved to another session.
        lock_found(tx, "turn_key", turn_id=delivery.turn_id)
        settle_turn(tx, delivery.turn_id)


def _settle(
    tx: Transaction, delivery: Delivery, worker_id: WorkerId, change: DeliveryChange
) -> bool:
    delivery_id = delivery.delivery_id
    # It may have moved to another session since it was claimed.
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
            settle_beginning(tx, delivery, change)
            following = tx.row("delivery_is_next", session_id=delivery.session_id)
            if following is None or following[0] != delivery.turn_id:
                _settle_turn(tx, delivery)  # else it owes something more
            return following is not None
        case Postpone():
            _postpone(tx, delivery, worker_id, change)
            if change.is_chat_wide:
                session_id, wait_ms = delivery.session_id, change.wait_ms
                tx.change("quiet_set", session_id=session_id, wait_ms=wait_ms, now=tx.now_ms)
        case Reroute(chat=chat, wait_ms=wait_ms):
            follow = Postpone(
                wait_ms=wait_ms,
                is_ambiguous=delivery.is_ambiguous,
                reason=f"the chat moved to {chat}",
            )
            _postpone(tx, delivery, worker_id, follow)
            move_session(tx, delivery.session_id, chat)
        case _:
            assert_never(change)
    return tx.row("delivery_is_next", session_id=delivery.session_id) is not None


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
    # A settled row never changes. The new row has a cause of its own, so there is one.
    tx.change("delivery_again", delivery_id=delivery_id, now=tx.now_ms)
    repeated = first_number(tx.row("delivery_retried", delivery_id=delivery_id))
    return None if repeated is None else DeliveryId(repeated)


def _release(tx: Transaction, delivery_id: DeliveryId | None) -> int:
    tx.hints.update((OUTBOX, OUTBOX_SOONER))
    lock_found(tx, "keys_to_release", delivery_id=delivery_id)
    released = _let_go(tx, delivery_id)
    tx.change("gaps_settle", now=tx.now_ms)
    return released


def _let_go(tx: Transaction, delivery_id: DeliveryId | None) -> int:
    """Owe again what is held: one delivery, or all."""
    values: dict[str, Value] = {"delivery_id": delivery_id, "now": tx.now_ms}
    return move(tx, "deliveries_release", DeliveryEvent.RELEASED, **values)


def hold_outbox(tx: Transaction, reason: str) -> None:
    """Hold everything that is owed until the operator releases it."""
    move(tx, "outbox_hold", DeliveryEvent.HELD, reason=reason)


def hold_after_going_back(tx: Transaction, reason: str) -> None:
    """The same for a database that went back: send keys, devices and agents are others then."""
    hold_outbox(tx, reason)
    for change in ("agents_ask_end", "send_id_forget", "devices_forget"):
        tx.change(change)


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
    # The deliveries behind it are due now, and a turn that owed nothing else is done.
    tx.hints.update((OUTBOX, OUTBOX_SOONER, JOURNAL))
    _, turn_id = row
    if turn_id is not None:
        lock_found(tx, "turn_key", turn_id=turn_id)
        settle_turn(tx, TurnId(number(turn_id)))
    return True


def _postpone(tx: Transaction, delivery: Delivery, worker_id: WorkerId, change: Postpone) -> None:
    strike = int(_is_strike(tx, delivery, change))
    # A poisoned delivery ends at once, because its session waits behind it.
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
    """Whether the outcome is unknown although the channel accepted another delivery since the last
    attempt. A platform that asks for a pause says nothing against the message."""
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
