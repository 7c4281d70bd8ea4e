"""The first claim of a turn: messages from before this boot connected join it."""

from koboshi.domain import notes
from koboshi.domain.backlog import AcceptedMessage, Boot, joined
from koboshi.domain.ids import WorkerId
from koboshi.domain.inbox import Words
from koboshi.domain.transcript import Note
from koboshi.domain.turn import Claim
from koboshi.kernel.context import VerbContext
from koboshi.kernel.record import add_step, attach_entry
from koboshi.kernel.rows import entry_of, is_gone
from koboshi.kernel.transaction import Reading, Row, Transaction


def join_backlog(tx: Transaction, context: VerbContext, claim: Claim) -> None:
    """Attach the other messages that the turn answers. Its deliveries refer to the newest one.

    It is part of the transaction of the first claim. A later claim finds the messages in the turn
    and adds none.
    """
    waiting = tx.rows("entries_waiting", session_id=claim.session_id)
    if not waiting:
        return
    begun = [_accepted(tx, row) for row in tx.rows("entries_of_turn", turn_id=claim.turn_id)]
    place = {"session_id": claim.session_id, "worker_id": claim.worker_id}
    boot = Boot(worker_id=claim.worker_id, connected_ms=tx.number("boot_connected", **place))
    entries = joined(begun, (_accepted(tx, row) for row in waiting), boot, context.backlog)
    if not entries:
        return
    for entry in entries:
        attach_entry(tx, claim.session_id, claim.turn_id, claim.epoch, entry)
    newest = entries[-1]
    assert isinstance(newest.body, Words)
    speaker = {"person": newest.sender, "anchor": newest.body.anchor}
    tx.change("turn_speaks", turn_id=claim.turn_id, **speaker)
    heard = sum(isinstance(each.entry.body, Words) for each in begun) + len(entries)
    note = Note(cause=notes.BACKLOG, text=notes.backlog(heard))
    add_step(tx, claim.session_id, claim.turn_id, claim.epoch, notes.BACKLOG, note)


def _accepted(tx: Reading, row: Row) -> AcceptedMessage:
    found = entry_of(row)
    by = found.accepted_by
    return AcceptedMessage(
        entry=found.entry,
        accepted_by=by,
        received_ms=found.received_ms,
        is_by_gone=by is not None and is_gone(tx, WorkerId(by)),
    )
