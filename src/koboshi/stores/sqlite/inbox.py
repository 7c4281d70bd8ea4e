"""The inbox: what arrived is stored, together with what follows from it."""

from collections.abc import Sequence

from koboshi.domain import phrases
from koboshi.domain.ids import ChannelName, EntryId, SessionId, WorkerId
from koboshi.domain.inbox import (
    Attach,
    Drop,
    Entry,
    EntryKind,
    EntryState,
    Hold,
    Interrupt,
    Open,
    OpenTurn,
    Redecide,
    Words,
)
from koboshi.domain.people import NOT_ALLOWED
from koboshi.domain.session import Session
from koboshi.domain.turn import TurnEvent
from koboshi.ports.channel import Inbound, Receipt
from koboshi.ports.store import Arrival, Respond
from koboshi.ports.wakeups import JOURNAL
from koboshi.stores.sqlite.commands import carry_out
from koboshi.stores.sqlite.facts import is_postponed
from koboshi.stores.sqlite.ground import Ground
from koboshi.stores.sqlite.judge import judge
from koboshi.stores.sqlite.pairing import as_kept, meet_stranger
from koboshi.stores.sqlite.reader import Readers
from koboshi.stores.sqlite.replies import answer_question
from koboshi.stores.sqlite.rows import (
    TurnRow,
    encoded,
    number,
    text,
    words_of,
)
from koboshi.stores.sqlite.sessions import (
    abandon_deliveries,
    find_or_make_session,
)
from koboshi.stores.sqlite.transaction import Transaction, Value
from koboshi.stores.sqlite.writer import Writer
from koboshi.stores.sqlite.writes import (
    admission_of,
    ask_processes_to_end,
    drop_entry,
    move_turn,
    open_next,
    open_turn,
    owe,
    owe_once,
    read_open_turn,
    read_question,
    resolve_calls,
)


class SqliteInbox:
    def __init__(self, writer: Writer, readers: Readers, ground: Ground) -> None:
        self._writer = writer
        self._readers = readers
        self._ground = ground

    async def cursor(self, channel: ChannelName) -> str | None:
        row = await self._readers.read(lambda tx: tx.row("cursor_get", channel=channel))
        return None if row is None else text(row[0])

    async def messages_waiting(self, session_id: SessionId) -> int:
        return await self._readers.read(
            lambda tx: tx.number("messages_waiting_count", session_id=session_id)
        )

    async def accept(
        self,
        channel: ChannelName,
        arrivals: Sequence[Arrival],
        *,
        cursor: str | None,
        respond: Respond,
    ) -> tuple[Receipt, ...]:
        def operation(tx: Transaction) -> tuple[Receipt, ...]:
            if cursor is not None:
                tx.change("cursor_set", channel=channel, token=cursor)
            return tuple(_take_in(tx, self._ground, arrival, respond) for arrival in arrivals)

        return await self._writer.write("inbox.accept", operation)


def _take_in(tx: Transaction, ground: Ground, arrival: Arrival, respond: Respond) -> Receipt:
    if arrival.ignored is not None:
        return _insert(tx, ground, arrival, None, EntryKind.IGNORED, EntryState.IGNORED)
    inbound = arrival.inbound
    # Before anything else is looked at: nobody who is not allowed commands, or opens anything.
    if not ground.allows(tx, inbound.route.channel, inbound.sender):
        return _turn_down(tx, ground, inbound)
    session = find_or_make_session(tx, arrival.inbound.route)
    if arrival.command is not None:
        receipt = _insert(tx, ground, arrival, session, EntryKind.COMMAND, EntryState.HANDLED)
        if not receipt.is_duplicate:
            carry_out(tx, ground, session, arrival.inbound, receipt, arrival.command, respond)
        return receipt
    receipt = _insert(tx, ground, arrival, session, EntryKind.MESSAGE, EntryState.WAITING)
    if receipt.is_duplicate:
        return receipt
    state = _admit(tx, ground, session, _entry(arrival, session, receipt.entry_id))
    if ground.is_draining and state is not EntryState.DROPPED:
        cause, anchor = f"drain:{ground.worker_id}", arrival.inbound.words.anchor
        owe_once(tx, session.session_id, cause, phrases.after_restart(), anchor=anchor)
    return Receipt(entry_id=receipt.entry_id, state=state, is_duplicate=False)


def _turn_down(tx: Transaction, ground: Ground, inbound: Inbound) -> Receipt:
    """Nothing is done for a stranger; the first time they may hear how that can change."""
    arrival = Arrival(inbound=as_kept(inbound), ignored=NOT_ALLOWED)
    receipt = _insert(tx, ground, arrival, None, EntryKind.IGNORED, EntryState.IGNORED)
    if not receipt.is_duplicate:
        meet_stranger(tx, ground, inbound, receipt.entry_id)
    return receipt


def _insert(
    tx: Transaction,
    ground: Ground,
    arrival: Arrival,
    session: Session | None,
    kind: EntryKind,
    state: EntryState,
) -> Receipt:
    """The one place where a row enters the inbox; a key that is there already changes nothing."""
    inbound = arrival.inbound
    source, body = inbound.route.channel, encoded(inbound.words)
    worker_id: WorkerId | None = ground.worker_id
    inserted = tx.change(
        "entry_insert",
        session_id=None if session is None else session.session_id,
        generation=None if session is None else session.generation,
        kind=kind,
        source=source,
        external_id=inbound.external_id,
        sender=inbound.sender,
        body=body,
        during_turn=None,
        accepted_by=worker_id,
        now=tx.now_ms,
        state=state,
        reason=arrival.ignored,
    )
    if inserted:
        tx.hints.add(JOURNAL)
        return Receipt(entry_id=EntryId(tx.last_id()), state=state, is_duplicate=False)
    row = tx.row("entry_by_key", source=source, external_id=inbound.external_id)
    assert row is not None
    return Receipt(
        entry_id=EntryId(number(row[0])),
        state=EntryState(text(row[1])),
        is_duplicate=True,
        is_same=_is_same_place(row[3], session) and _is_same(row[2], inbound.words),
    )


def _is_same_place(stored: Value, session: Session | None) -> bool:
    """Whether a repeated key came from the same chat, as far as both are known."""
    return stored is None or session is None or stored == session.session_id


def _is_same(stored: object, words: Words) -> bool:
    """Whether a repeated key came with the same words; when they were sent does not matter."""
    before = words_of(str(stored))
    return (before.text, before.question, before.choice_id) == (
        words.text,
        words.question,
        words.choice_id,
    )


def _entry(arrival: Arrival, session: Session, entry_id: EntryId) -> Entry:
    inbound = arrival.inbound
    return Entry(
        entry_id=entry_id,
        session_id=session.session_id,
        generation=session.generation,
        kind=EntryKind.MESSAGE,
        source=inbound.route.channel,
        external_id=inbound.external_id,
        sender=inbound.sender,
        body=inbound.words,
    )


def _admit(tx: Transaction, ground: Ground, session: Session, entry: Entry) -> EntryState:
    """Do with a message what `admit()` says."""
    turn = read_open_turn(tx, session.session_id)
    match admission_of(tx, ground, session, _as_open(turn), entry):
        case Open():
            open_turn(tx, session, entry)
            return EntryState.ATTACHED
        case Attach() if turn is not None and not _is_offered(tx, turn, entry):
            drop_entry(tx, entry.entry_id, "no-such-choice")
            _tell(tx, session, entry, phrases.no_such_choice())
        case Attach() if turn is not None:
            answer_question(tx, ground, session, turn, entry)
        case Interrupt() if turn is not None:
            _interrupt(tx, ground, turn)
        case Redecide() if turn is not None:
            judge(tx, ground, turn, entry.entry_id)
        case Drop(reason=reason):
            drop_entry(tx, entry.entry_id, reason)
            _tell_who_is_late(tx, session, entry)
        case Hold() | _:
            if _is_full(tx, ground, session.session_id):
                _turn_away(tx, session, entry)
    row = tx.row("entry_by_key", source=entry.source, external_id=entry.external_id)
    assert row is not None
    return EntryState(text(row[1]))


def _as_open(turn: TurnRow | None) -> OpenTurn | None:
    if turn is None:
        return None
    return OpenTurn(
        turn_id=turn.turn_id,
        state=turn.state,
        question=turn.question_seq,
        is_postponed=is_postponed(turn),
    )


def _interrupt(tx: Transaction, ground: Ground, turn: TurnRow) -> None:
    """The turn at work ends, and the message that ended it opens the next."""
    by = "interrupted by a new message"
    resolve_calls(tx, turn.session_id, turn.turn_id, turn.epoch, by)
    move_turn(tx, turn.turn_id, turn.epoch, turn.state, TurnEvent.INTERRUPTED, reason=by)
    abandon_deliveries(tx, turn.session_id, turn.turn_id, by)
    ask_processes_to_end(tx, turn.session_id, turn.turn_id, everything=False)
    open_next(tx, ground, turn.session_id)


def _is_full(tx: Transaction, ground: Ground, session_id: SessionId) -> bool:
    return tx.number("entries_waiting_count", session_id=session_id) > ground.waiting_max


def _turn_away(tx: Transaction, session: Session, entry: Entry) -> None:
    drop_entry(tx, entry.entry_id, "inbox-full")
    words = "Too many messages are waiting here; I did not take this one. Try again later."
    _tell(tx, session, entry, words)


def _tell_who_is_late(tx: Transaction, session: Session, entry: Entry) -> None:
    """Whoever picks an answer to a question that is closed hears so. A second press of the button
    that counted is only an echo of the first."""
    if not isinstance(entry.body, Words) or entry.body.question is None:
        return
    question, choice_id = entry.body.question, entry.body.choice_id
    place = {"session_id": session.session_id, "question": question, "choice_id": choice_id}
    if tx.row("entry_picked_before", **place):
        return
    _tell(tx, session, entry, phrases.too_late())


def _is_offered(tx: Transaction, turn: TurnRow, entry: Entry) -> bool:
    """Whether the open question has the choice that was pressed; words need none."""
    if not isinstance(entry.body, Words) or entry.body.choice_id is None:
        return True
    assert turn.question_seq is not None
    choices = read_question(tx, turn.question_seq).choices
    return entry.body.choice_id in [choice.choice_id for choice in choices]


def _tell(tx: Transaction, session: Session, entry: Entry, words: str) -> None:
    """A notice to whoever sent what was not taken."""
    anchor = entry.body.anchor if isinstance(entry.body, Words) else ""
    cause = f"refused:{entry.entry_id}"
    owe(tx, session.session_id, None, cause, (words,), anchor=anchor)
