"""What becomes of a message, in the transaction that stores it."""

from collections.abc import Callable
from typing import TypeAlias

from koboshi.domain import phrases
from koboshi.domain.approval import NotAnAnswer
from koboshi.domain.ids import EntryId, SessionId
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
    yes_or_no,
)
from koboshi.domain.recovery import Verdict
from koboshi.domain.role import NoRuling
from koboshi.domain.session import Session
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.kernel.approvals import no_answer
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_text
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.facts import is_postponed, may_run, no_ruling
from koboshi.kernel.next_turn import admission_of, end_turn, go_on_after_reply, open_turn
from koboshi.kernel.questions import answer_question
from koboshi.kernel.record import attach_entry, drop_entry
from koboshi.kernel.rows import TurnRow, read_open_turn, read_question, read_request
from koboshi.kernel.transaction import Transaction

Judge: TypeAlias = Callable[[Transaction, VerbContext, TurnRow, EntryId], Verdict]
"""Decides about a turn and does what was decided: `apply_verdict` of `recovery.py`."""


def apply_admission(
    tx: Transaction, context: VerbContext, session: Session, entry: Entry, judge: Judge
) -> EntryState:
    """Do with a message that was stored what `admit()` says. Returns what became of it."""
    turn = read_open_turn(tx, session.session_id)
    if turn is not None and not may_run(tx, context, session.route.channel, turn):
        _judge_barred(tx, context, session, turn, entry, judge)
        return _state_of(tx, entry)
    match admission_of(tx, context, session, _as_open(turn), entry):
        case Open():
            open_turn(tx, context, session, entry)
            return EntryState.ATTACHED
        case Attach() if turn is not None and turn.state is TurnState.QUEUED:
            attach_entry(tx, session.session_id, turn.turn_id, turn.epoch, entry)
        case Attach() if turn is not None and (
            why := no_ruling(tx, context, session, turn, entry.sender)
        ):
            _refuse_ruling(tx, context, session, entry, why)
        case Attach() if turn is not None and (
            barred := no_answer(tx, context, session, turn, entry.sender, _words(entry))
        ):
            _keep_or_refuse(tx, context, session, entry, barred)
        case Attach() if turn is not None and not _is_offered(tx, turn, entry):
            drop_entry(tx, entry.entry_id, "no-such-choice")
            _tell(tx, session, entry, phrases.no_such_choice())
        case Attach() if turn is not None:
            is_over = answer_question(tx, context, session, turn, entry)
            go_on_after_reply(tx, context, turn, is_over=is_over)
        case Interrupt() if turn is not None:
            end_turn(tx, context, turn, TurnEvent.INTERRUPTED, "interrupted by a new message")
        case Redecide() if turn is not None:
            judge(tx, context, turn, entry.entry_id)
        case Drop(reason=reason):
            drop_entry(tx, entry.entry_id, reason)
            _tell_who_is_late(tx, session, entry)
        case Hold() | _:
            if _is_full(tx, context, session.session_id):
                _reject_full(tx, session, entry)
    return _state_of(tx, entry)


def _judge_barred(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    turn: TurnRow,
    entry: Entry,
    judge: Judge,
) -> None:
    """A person whose message is in the turn lost the right. The turn is judged now, so that no
    message waits behind it, and no person answers its question: a choice is refused with the true
    reason, and the question stays open until the person is let in again or its time is over."""
    question = entry.body.question if isinstance(entry.body, Words) else None
    if question is not None and question == turn.question_seq:
        drop_entry(tx, entry.entry_id, "person-not-allowed")
        _tell(tx, session, entry, phrases.no_choice_now(read_request(tx, turn)))
        return
    judge(tx, context, turn, entry.entry_id)
    if question is not None and _state_of(tx, entry) is EntryState.WAITING:
        drop_entry(tx, entry.entry_id, "question-closed")
    if _state_of(tx, entry) is EntryState.DROPPED:
        _tell_who_is_late(tx, session, entry)


def _words(entry: Entry) -> Words:
    assert isinstance(entry.body, Words), "only words answer a question"
    return entry.body


def _refuse_ruling(
    tx: Transaction, context: VerbContext, session: Session, entry: Entry, why: NoRuling
) -> None:
    """A yes or no of a person who does not decide is refused, and they are told. Other words wait
    until the turn is over."""
    words = _words(entry)
    if words.question is not None or yes_or_no(words) is not None:
        drop_entry(tx, entry.entry_id, why)
        _tell(tx, session, entry, phrases.NO_RULING[why])
    elif _is_full(tx, context, session.session_id):
        _reject_full(tx, session, entry)


def _keep_or_refuse(
    tx: Transaction, context: VerbContext, session: Session, entry: Entry, why: NotAnAnswer
) -> None:
    """It answers nothing. A yes to what was not shown, or not whole, is refused, and its sender
    told where to answer; other words wait until the turn is over."""
    if why in phrases.NO_YES_HERE:
        drop_entry(tx, entry.entry_id, why)
        _tell(tx, session, entry, phrases.NO_YES_HERE[why])
    elif _is_full(tx, context, session.session_id):
        _reject_full(tx, session, entry)
    elif why is NotAnAnswer.WORDLESS:
        _tell(tx, session, entry, phrases.no_spoken_ruling())


def _state_of(tx: Transaction, entry: Entry) -> EntryState:
    state = first_text(tx.row("entry_state", entry_id=entry.entry_id))
    assert state is not None
    return EntryState(state)


def _as_open(turn: TurnRow | None) -> OpenTurn | None:
    if turn is None:
        return None
    return OpenTurn(
        turn_id=turn.turn_id,
        state=turn.state,
        question=turn.question_seq,
        is_postponed=is_postponed(turn),
    )


def _is_full(tx: Transaction, context: VerbContext, session_id: SessionId) -> bool:
    return tx.number("entries_waiting_count", session_id=session_id) > context.waiting_max


def _reject_full(tx: Transaction, session: Session, entry: Entry) -> None:
    drop_entry(tx, entry.entry_id, "inbox-full")
    words = "Too many messages are waiting here; I did not take this one. Try again later."
    _tell(tx, session, entry, words)


def _tell_who_is_late(tx: Transaction, session: Session, entry: Entry) -> None:
    """Tell a person who chose an answer to a closed question that it came too late. A second press
    of the choice that counted gets no message."""
    if not isinstance(entry.body, Words) or entry.body.question is None:
        return
    question, choice_id = entry.body.question, entry.body.choice_id
    place = {"session_id": session.session_id, "question": question, "choice_id": choice_id}
    if tx.row("entry_picked_before", **place):
        return
    _tell(tx, session, entry, phrases.too_late())


def _is_offered(tx: Transaction, turn: TurnRow, entry: Entry) -> bool:
    """Whether the open question has the choice that was pressed. Words need no choice."""
    if not isinstance(entry.body, Words) or entry.body.choice_id is None:
        return True
    assert turn.question_seq is not None
    choices = read_question(tx, turn.question_seq).choices
    return entry.body.choice_id in [choice.choice_id for choice in choices]


def _tell(tx: Transaction, session: Session, entry: Entry, words: str) -> None:
    """A notice to the sender of a message that was not accepted."""
    anchor = entry.body.anchor if isinstance(entry.body, Words) else ""
    cause = f"refused:{entry.entry_id}"
    enqueue_delivery(tx, session.session_id, None, cause, (words,), anchor=anchor, to_person=True)
