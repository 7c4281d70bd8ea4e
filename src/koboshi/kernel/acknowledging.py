"""What a person is told at once of a message that waits."""

from koboshi.domain import phrases
from koboshi.domain.inbox import Entry, Words
from koboshi.domain.session import Busy, Session
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.transaction import Transaction


def acknowledge_waiting(tx: Transaction, session: Session, entry: Entry) -> None:
    """Tell a person that a message waits, if they said how it should wait (queue or steer)."""
    if not isinstance(entry.body, Words) or entry.body.busy is None:
        return
    ahead = tx.number("messages_waiting_count", session_id=session.session_id)
    steers = entry.body.busy is Busy.STEER
    words = phrases.steering() if steers else phrases.queued(ahead)
    cause = f"queued:{entry.entry_id}"
    enqueue_delivery(tx, session.session_id, None, cause, (words,), anchor=entry.body.anchor)
