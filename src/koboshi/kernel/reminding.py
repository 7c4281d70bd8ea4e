"""Reminders: words that are told as they are, at their time, whatever the model or a turn does."""

from koboshi.domain import time_words
from koboshi.domain.inbox import Entry, EntryEvent, Words
from koboshi.kernel.context import VerbContext
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.moves import move
from koboshi.kernel.record import store_entry
from koboshi.kernel.transaction import Transaction
from koboshi.ports.wakeups import JOURNAL


def tell_plainly(tx: Transaction, context: VerbContext, entry: Entry) -> int | None:
    """Owe the words of an occasion to its chat, with the entry that keeps them from being told
    twice. Returns the id of the entry; None if its key is there already."""
    stored = store_entry(tx, context, entry)
    if stored is None:
        return None
    assert isinstance(stored.body, Words)
    assert stored.body.trigger is not None
    move(tx, "entry_handle", EntryEvent.HANDLED, entry_id=stored.entry_id, now=tx.now_ms)
    trigger = stored.body.trigger
    zone = context.zone_or_own(trigger.zone)
    words = time_words.reminder(stored.body.text, trigger, tx.now_ms, zone)
    cause = f"reminder:{stored.entry_id}"
    enqueue_delivery(tx, stored.session_id, None, cause, (words,), anchor="")
    tx.hints.add(JOURNAL)
    return stored.entry_id
