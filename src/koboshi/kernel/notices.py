"""Notices to people: deliveries that were given up (one counted notice per chat), a full disk."""

from koboshi.domain import phrases
from koboshi.domain.ids import DeliveryId, SessionId
from koboshi.domain.outbox import UNDELIVERED, Delivery
from koboshi.kernel.decode import first_number, number, numbers, text
from koboshi.kernel.enqueue import enqueue_delivery, enqueue_delivery_once
from koboshi.kernel.keys import lock_found, lock_session
from koboshi.kernel.transaction import Transaction
from koboshi.ports.wakeups import OUTBOX

TOLD_AT_ONCE = 100
"""The reserve is small, so only the chats that wait longest are told."""


def tell_of_full_disk(tx: Transaction) -> None:
    """Tell each chat with an open turn, once per turn, why it may take long."""
    for turn_id, session_id, anchor in tx.rows("turns_in_flight", limit=TOLD_AT_ONCE):
        session = SessionId(number(session_id))
        lock_session(tx, session)
        enqueue_delivery_once(
            tx, session, f"full:{turn_id}", phrases.disk_full(), anchor=text(anchor)
        )


def tell_of_loss(tx: Transaction, delivery: Delivery) -> None:
    """Add a delivery to the notice of its chat. If that notice may have been sent, a new one is
    made."""
    route = delivery.route
    open_id = first_number(tx.row("notice_open", channel=route.channel, chat=route.chat))
    if open_id is None:
        cause = f"{UNDELIVERED}{delivery.delivery_id}"
        words = phrases.undelivered([delivery.delivery_id])
        enqueue_delivery(tx, delivery.session_id, None, cause, (words,), anchor="")
        notice_id = DeliveryId(tx.last_id())
    else:
        notice_id = DeliveryId(open_id)
        lock_found(tx, "delivery_key", delivery_id=notice_id)
    tx.change("notice_add", notice_id=notice_id, delivery_id=delivery.delivery_id)
    lost = numbers(tx.rows("notice_deliveries", notice_id=notice_id))
    words = phrases.undelivered([DeliveryId(each) for each in lost])
    tx.change("notice_reword", notice_id=notice_id, text=words)
    tx.hints.add(OUTBOX)
