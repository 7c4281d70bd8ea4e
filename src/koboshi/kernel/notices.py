"""The notice that tells a person of deliveries that were given up: one for each chat, counted."""

from koboshi.domain import phrases
from koboshi.domain.ids import DeliveryId, SessionId
from koboshi.domain.outbox import UNDELIVERED, Delivery
from koboshi.kernel.decode import number, text
from koboshi.kernel.keys import lock_found, lock_session
from koboshi.kernel.record import enqueue_delivery, enqueue_delivery_once
from koboshi.kernel.transaction import Transaction
from koboshi.ports.wakeups import OUTBOX

TOLD_AT_ONCE = 100
"""A reserve is small: the chats that waited longest are told."""


def tell_of_full_disk(tx: Transaction) -> None:
    """Each chat that waits for something hears once, for its turn, why it may take long."""
    for turn_id, session_id, anchor in tx.rows("turns_in_flight", limit=TOLD_AT_ONCE):
        session = SessionId(number(session_id))
        lock_session(tx, session)
        enqueue_delivery_once(
            tx, session, f"full:{turn_id}", phrases.disk_full(), anchor=text(anchor)
        )


def tell_of_loss(tx: Transaction, delivery: Delivery) -> None:
    """The notice of the chat tells of this delivery, too. One that may have been sent already stays
    as it is, and another one follows."""
    route = delivery.route
    row = tx.row("notice_open", channel=route.channel, chat=route.chat)
    if row is None:
        cause = f"{UNDELIVERED}{delivery.delivery_id}"
        words = phrases.undelivered([delivery.delivery_id])
        enqueue_delivery(tx, delivery.session_id, None, cause, (words,), anchor="")
        notice_id = DeliveryId(tx.last_id())
    else:
        notice_id = DeliveryId(number(row[0]))
        lock_found(tx, "delivery_key", delivery_id=notice_id)
    tx.change("notice_add", notice_id=notice_id, delivery_id=delivery.delivery_id)
    lost = tx.rows("notice_deliveries", notice_id=notice_id)
    words = phrases.undelivered([DeliveryId(number(each[0])) for each in lost])
    tx.change("notice_reword", notice_id=notice_id, text=words)
    tx.hints.add(OUTBOX)
