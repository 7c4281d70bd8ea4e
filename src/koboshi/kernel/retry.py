"""What an operator does to a message: it is dropped while it waits, or asked again."""

from dataclasses import replace

from koboshi.domain.ids import ChannelName, EntryId, SessionId, TurnId, shown
from koboshi.domain.inbox import EntryKind, EntryState, Words
from koboshi.domain.outbox import DeliveryEvent
from koboshi.domain.retry import ASKED, BY_HAND, EntryFacts, Retried, again_of
from koboshi.domain.route import Route
from koboshi.domain.session import Session
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import TurnRow, number, strangers_words_of, text, words_of
from koboshi.kernel.end_notes import RETRY
from koboshi.kernel.keys import lock_found, lock_session
from koboshi.kernel.moves import move
from koboshi.kernel.operator_action import ask_again, words_in
from koboshi.kernel.read import (
    find_session,
    moved_ms_of,
    read_open_turn,
    read_session,
    read_turn,
)
from koboshi.kernel.record import drop_entry
from koboshi.kernel.sessions import find_or_make_session
from koboshi.kernel.transaction import Reading, Row, Transaction
from koboshi.ports.wakeups import JOURNAL, OUTBOX


def drop_by_hand(tx: Transaction, entry_id: EntryId) -> bool:
    """A message that waits is not taken up. Nobody is told any more that it waits."""
    lock_found(tx, "entry_key", entry_id=entry_id)
    row = tx.row("view_entry", entry_id=entry_id)
    if row is None or row[3] != EntryKind.MESSAGE or row[4] != EntryState.WAITING:
        return False
    drop_entry(tx, entry_id, BY_HAND)
    move(
        tx,
        "queued_notice_abandon",
        DeliveryEvent.WITHDRAWN,
        session_id=row[1],
        entry_id=entry_id,
        reason="its message was dropped",
        now=tx.now_ms,
    )
    tx.hints.update((JOURNAL, OUTBOX))
    return True


def retry_entry(tx: Transaction, context: VerbContext, entry_id: EntryId) -> Retried | None:
    """Ask again what was not answered, once, with its own words or with those of its turn."""
    lock_found(tx, "entry_key", entry_id=entry_id)
    row = tx.row("view_entry", entry_id=entry_id)
    if row is None:
        return None
    turn = None if row[2] is None else read_turn(tx, TurnId(number(row[2])))
    words, route = _words(tx, context, row, turn), _route(tx, row)
    session = None if route is None else find_session(tx, route)
    facts = _facts(tx, context, row, words, turn, route, session)
    key = shown("message", entry_id) if turn is None else str(turn.turn_id)
    how = again_of(facts)
    before = tx.row("entry_by_key", source=RETRY, account="", external_id=key)
    if before is not None and facts.kind in (EntryKind.MESSAGE, EntryKind.IGNORED):
        return Retried(how=how, entry_id=EntryId(number(before[0])))
    if how not in ASKED:
        return Retried(how=how)
    assert route is not None, "what is asked again is asked somewhere"
    made = session or find_or_make_session(tx, route)
    lock_session(tx, made.session_id)
    if number(row[10]) <= moved_ms_of(tx, made.session_id):
        words = replace(words, anchor="")
    asked = ask_again(tx, context, made, text(row[8]), words, key)
    return Retried(how=how, entry_id=asked, is_new=True)


def _facts(
    tx: Reading,
    context: VerbContext,
    row: Row,
    words: Words,
    turn: TurnRow | None,
    route: Route | None,
    session: Session | None,
) -> EntryFacts:
    is_served = route is not None and context.serves(tx, route.channel, text(row[8]))
    return EntryFacts(
        kind=EntryKind(text(row[3])),
        state=EntryState(text(row[4])),
        reason=None if row[5] is None else text(row[5]),
        text=words.text,
        has_files=bool(words.files),
        is_press=words.question is not None,
        turn=None if turn is None else turn.state,
        has_place=route is not None,
        is_served=is_served,
        is_full=session is not None and _is_full(tx, context, session.session_id),
    )


def _words(tx: Reading, context: VerbContext, row: Row, turn: TurnRow | None) -> Words:
    """What would be asked; nothing where no person said anything."""
    if row[3] == EntryKind.REPORT:
        return Words(text="", sent_ms=0)
    own = words_of(row[9])
    if turn is None:
        return own
    said = words_in(tx, context, turn)
    return replace(said, sent_ms=own.sent_ms, anchor=own.anchor, name=own.name)


def _route(tx: Reading, row: Row) -> Route | None:
    """Where it was said; None where that was not kept."""
    if row[1] is not None:
        return read_session(tx, SessionId(number(row[1]))).route
    said = strangers_words_of(row[9])
    if not said.chat:
        return None
    return Route(channel=ChannelName(text(row[6])), chat=said.chat, thread=said.thread)


def _is_full(tx: Reading, context: VerbContext, session_id: SessionId) -> bool:
    """Whether a message that has to wait would be turned away."""
    if read_open_turn(tx, session_id) is None:
        return False
    return tx.number("entries_waiting_count", session_id=session_id) >= context.waiting_max
