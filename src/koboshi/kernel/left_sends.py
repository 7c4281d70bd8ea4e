"""Sends that no task waits for any more, under a worker that lives."""

from koboshi.domain.ids import DeliveryId, WorkerId
from koboshi.domain.outbox import DeliveryEvent, DeliveryState
from koboshi.kernel.decode import number
from koboshi.kernel.keys import lock
from koboshi.kernel.moves import move_from
from koboshi.kernel.transaction import Transaction
from koboshi.ports.wakeups import OUTBOX, OUTBOX_SOONER


def let_go_of(tx: Transaction, worker_id: WorkerId, under_way: frozenset[DeliveryId]) -> int:
    """Owe again, as of unknown outcome, what the worker sends, but for what is under way."""
    count = 0
    for found, key in tx.rows("deliveries_sent_by", worker_id=worker_id):
        delivery_id = DeliveryId(number(found))
        if delivery_id in under_way:
            continue
        lock(tx, number(key))
        count += move_from(
            tx,
            "delivery_postpone",
            DeliveryEvent.POSTPONED,
            DeliveryState.SENDING,
            delivery_id=delivery_id,
            worker_id=worker_id,
            not_before_ms=tx.now_ms,
            wait_ms=0,
            ambiguous=1,
            unsure=0,
            strike=0,
            reason="its sender was not sure of its claims, and cannot tell whether it arrived",
            now=tx.now_ms,
        )
        tx.hints.update((OUTBOX, OUTBOX_SOONER))
    return count
