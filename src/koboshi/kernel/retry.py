"""A message is dropped while it waits, or words that were not answered are asked again."""

from dataclasses import dataclass, replace

from koboshi.domain.command import Retry
from koboshi.domain.ids import ChannelName, EntryId, SessionId, shown
from koboshi.domain.inbox import TIMED, Entry, EntryKind, EntryState, Words
from koboshi.domain.outbox import DeliveryEvent
from koboshi.domain.retry import ASKED, BY_HAND, EntryFacts, Retried, again_of
from koboshi.domain.route import Route
from koboshi.domain.session import Busy, Session
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import strangers_words_of, words_of
from koboshi.kernel.failed_turns import words_in
from koboshi.kernel.keys import lock_found, lock_session
from koboshi.kernel.moves import move
from koboshi.kernel.record import NOT_STORED, drop_entry, store_entry
from koboshi.kernel.rows import (
    RETRY,
    EntryRow,
    TurnRow,
    find_entry,
    find_session,
    moved_ms_of,
    read_entry,
    read_open_turn,
    read_session,
    read_turn,
)
from koboshi.kernel.sessions import find_or_make_session
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.wakeups import JOURNAL, OUTBOX


def drop_by_hand(tx: Transaction, entry_id: EntryId) -> bool:
    """Drop a message that waits, and withdraw the notice that it waits."""
    lock_found(tx, "entry_key", entry_id=entry_id)
    stored = read_entry(tx, entry_id)
    droppable = (EntryKind.MESSAGE, *TIMED)
    if stored is None or stored.kind not in droppable or stored.state != EntryState.WAITING:
        return False
    drop_entry(tx, entry_id, BY_HAND)
    move(
        tx,
        "queued_notice_abandon",
        DeliveryEvent.WITHDRAWN,
        session_id=stored.session_id,
        entry_id=entry_id,
        reason="its message was dropped",
        now=tx.now_ms,
    )
    tx.hints.update((JOURNAL, OUTBOX))
    return True


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """Words that are in the inbox again. The caller admits them."""

    session: Session
    entry: Entry


def retry_entry(
    tx: Transaction, context: VerbContext, entry_id: EntryId, *, wants_anew: bool
) -> tuple[Retried | None, AskedAgain | None]:
    """Ask again what was not answered, or is to be answered anew, once, with its own words or with
    those of its turn. The first is None if there is no such entry."""
    lock_found(tx, "entry_key", entry_id=entry_id)
    stored = read_entry(tx, entry_id)
    if stored is None:
        return None, None
    turn = None if stored.turn_id is None else read_turn(tx, stored.turn_id)
    words, route = _words(tx, context, stored, turn), _route(tx, stored)
    session = None if route is None else find_session(tx, route)
    facts = _facts(tx, context, stored, words, turn, route, session)
    facts = replace(facts, wants_anew=wants_anew)
    key = shown("message", entry_id) if turn is None else str(turn.turn_id)
    how = again_of(facts)
    before = find_entry(tx, source=RETRY, account="", external_id=key)
    if before is not None and facts.kind in (EntryKind.MESSAGE, EntryKind.IGNORED):
        return Retried(how=how, entry_id=before.entry_id), None
    if how not in ASKED:
        return Retried(how=how), None
    assert route is not None, "what is asked again is asked somewhere"
    made = session or find_or_make_session(tx, route)
    lock_session(tx, made.session_id)
    if stored.received_ms <= moved_ms_of(tx, made.session_id):
        words = replace(words, anchor="")
    asked = _ask_again(tx, context, made, stored.sender, words, key)
    return Retried(how=how, entry_id=asked.entry.entry_id, is_new=True), asked


def _facts(
    tx: Reading,
    context: VerbContext,
    stored: EntryRow,
    words: Words,
    turn: TurnRow | None,
    route: Route | None,
    session: Session | None,
) -> EntryFacts:
    is_served = route is not None and context.serves(tx, route.channel, stored.sender)
    return EntryFacts(
        kind=EntryKind(stored.kind),
        state=EntryState(stored.state),
        reason=stored.reason,
        text=words.text,
        has_files=bool(words.files),
        is_press=words.question is not None,
        turn=None if turn is None else turn.state,
        has_place=route is not None,
        is_served=is_served,
        is_full=session is not None and _is_full(tx, context, session.session_id),
    )


def _words(tx: Reading, context: VerbContext, stored: EntryRow, turn: TurnRow | None) -> Words:
    """The words to ask; empty for a report."""
    if stored.kind == EntryKind.REPORT:
        return Words(text="", sent_ms=0)
    own = words_of(stored.body)
    if turn is None:
        return own
    said = words_in(tx, context, turn)
    return replace(said, sent_ms=own.sent_ms, anchor=own.anchor, name=own.name)


def _route(tx: Reading, stored: EntryRow) -> Route | None:
    """The route of the entry; None if it was not stored."""
    if stored.session_id is not None:
        return read_session(tx, stored.session_id).route
    said = strangers_words_of(stored.body)
    if not said.chat:
        return None
    return Route(channel=ChannelName(stored.source), chat=said.chat, thread=said.thread)


def _is_full(tx: Reading, context: VerbContext, session_id: SessionId) -> bool:
    """Whether a message that must wait would be rejected."""
    if read_open_turn(tx, session_id) is None:
        return False
    return tx.number("entries_waiting_count", session_id=session_id) >= context.waiting_max


def retry_turn(
    tx: Transaction, context: VerbContext, session: Session, person: str, words: Words, retry: Retry
) -> AskedAgain:
    """Ask the words of a closed turn again, as a message of the person who wants it."""
    turn = read_turn(tx, retry.turn_id)
    assert turn is not None
    said = words_in(tx, context, turn)
    body = replace(said, sent_ms=words.sent_ms, anchor=words.anchor, name=words.name)
    return _ask_again(tx, context, session, person, body, str(retry.turn_id))


def _ask_again(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    person: str,
    words: Words,
    external_id: str,
) -> AskedAgain:
    """Store words that were not answered as a new message. It waits for a turn of its own if one is
    open. Each key is used once, so words are asked again once."""
    entry = Entry(
        entry_id=NOT_STORED,
        session_id=session.session_id,
        generation=session.generation,
        kind=EntryKind.MESSAGE,
        source=RETRY,
        external_id=external_id,
        sender=person,
        body=replace(words, busy=Busy.QUEUE, group=""),
    )
    stored = store_entry(tx, context, entry)
    assert stored is not None, "words that were asked again are not asked again"
    return AskedAgain(session, stored)
