"""What becomes of a message, in the transaction that stores it."""

from koboshi.domain import phrases
from koboshi.domain.ids import SessionId
from koboshi.domain.inbox import (
    Attach,
    Drop,
    Entry,
    EntryState,
    Hold,
    Interrupt,
    Open,
    OpenTurn,
    Redecide,
    Words,
)
from koboshi.domain.session import Session
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import TurnRow, text
from koboshi.kernel.facts import is_postponed
from koboshi.kernel.questions import answer_question
from koboshi.kernel.read import read_open_turn, read_question
from koboshi.kernel.record import (
    admission_of,
    ask_processes_to_end,
    attach_entry,
    drop_entry,
    enqueue_delivery,
    move_turn,
    open_turn,
    resolve_calls,
)
from koboshi.kernel.recovery import apply_verdict
from koboshi.kernel.senders import may_run
from koboshi.kernel.sessions import abandon_deliveries
from koboshi.kernel.telling import go_on_after
from koboshi.kernel.transaction import Transaction


def apply_admission(
    tx: Transaction, context: VerbContext, session: Session, entry: Entry
) -> EntryState:
    """Do with a message that was stored what `admit()` says. Returns what became of it."""
    turn = read_open_turn(tx, session.session_id)
    if turn is not None and not may_run(tx, context, session.route.channel, turn):
        return _pass_by(tx, context, session, turn, entry)
    match admission_of(tx, context, session, _as_open(turn), entry):
        case Open():
            open_turn(tx, session, entry)
            return EntryState.ATTACHED
        case Attach() if turn is not None and turn.state is TurnState.QUEUED:
            attach_entry(tx, session.session_id, turn.turn_id, turn.epoch, entry)
        case Attach() if turn is not None and not _is_offered(tx, turn, entry):
            drop_entry(tx, entry.entry_id, "no-such-choice")
            _tell(tx, session, entry, phrases.no_such_choice())
        case Attach() if turn is not None:
            answer_question(tx, context, session, turn, entry)
        case Interrupt() if turn is not None:
            _interrupt(tx, context, turn)
        case Redecide() if turn is not None:
            apply_verdict(tx, context, turn, entry.entry_id)
        case Drop(reason=reason):
            drop_entry(tx, entry.entry_id, reason)
            _tell_who_is_late(tx, session, entry)
        case Hold() | _:
            if _is_full(tx, context, session.session_id):
                _reject_full(tx, session, entry)
    return _state_of(tx, entry)


def _pass_by(
    tx: Transaction, context: VerbContext, session: Session, turn: TurnRow, entry: Entry
) -> EntryState:
    """The open turn does not run, because a person whose message is in it may not use the gateway
    any more. It is judged now, so that nobody waits behind it or answers its question."""
    apply_verdict(tx, context, turn, entry.entry_id)
    state = _state_of(tx, entry)
    if state is EntryState.DROPPED:
        _tell_who_is_late(tx, session, entry)
    return state


def _state_of(tx: Transaction, entry: Entry) -> EntryState:
    row = tx.row("entry_state", entry_id=entry.entry_id)
    assert row is not None
    return EntryState(text(row[0]))


def _as_open(turn: TurnRow | None) -> OpenTurn | None:
    if turn is None:
        return None
    return OpenTurn(
        turn_id=turn.turn_id,
        state=turn.state,
        question=turn.question_seq,
        is_postponed=is_postponed(turn),
    )


def _interrupt(tx: Transaction, context: VerbContext, turn: TurnRow) -> None:
    """The turn at work ends, and the message that ended it opens the next."""
    by = "interrupted by a new message"
    resolve_calls(tx, turn.session_id, turn.turn_id, turn.epoch, by)
    move_turn(tx, turn.turn_id, turn.epoch, turn.state, TurnEvent.INTERRUPTED, reason=by)
    abandon_deliveries(tx, turn.session_id, turn.turn_id, by)
    ask_processes_to_end(tx, turn.session_id, turn.turn_id, everything=False)
    go_on_after(tx, context, turn.session_id, turn.turn_id)


def _is_full(tx: Transaction, context: VerbContext, session_id: SessionId) -> bool:
    return tx.number("entries_waiting_count", session_id=session_id) > context.waiting_max


def _reject_full(tx: Transaction, session: Session, entry: Entry) -> None:
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
    enqueue_delivery(tx, session.session_id, None, cause, (words,), anchor=anchor)
