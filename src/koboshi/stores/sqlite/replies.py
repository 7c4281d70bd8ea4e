"""What a person's words do to the question that a turn waits for."""

from koboshi.domain import notes, phrases
from koboshi.domain.ids import CallId, TurnId
from koboshi.domain.inbox import Entry, Words, picked_choice, yes_or_no
from koboshi.domain.session import Session
from koboshi.domain.transcript import Author, Need, Question, Result, ResultStatus
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.stores.sqlite.facts import BY_PERSON, facts_of
from koboshi.stores.sqlite.ground import Ground
from koboshi.stores.sqlite.resume import resume
from koboshi.stores.sqlite.rows import TurnRow, call_of, encoded
from koboshi.stores.sqlite.transaction import Transaction
from koboshi.stores.sqlite.writes import (
    add_result,
    mark_attached,
    move_turn,
    open_next,
    owe,
    read_question,
    read_turn,
    readmit_reports,
    resolve_calls,
)


def answer_question(
    tx: Transaction, ground: Ground, session: Session, turn: TurnRow, entry: Entry
) -> None:
    """Apply the words to the open question, once: the turn waits no longer."""
    assert turn.question_seq is not None
    assert isinstance(entry.body, Words)
    question = read_question(tx, turn.question_seq)
    anchor = entry.body.anchor
    tx.change("turn_speaks", turn_id=turn.turn_id, person=entry.sender, anchor=anchor)
    if question.author is Author.GATEWAY:
        _answer_gateway(tx, ground, session, turn, entry, entry.body)
    else:
        _answer_model(tx, turn, entry, entry.body, question)
    readmit_reports(tx, ground, session.session_id)


def expire_question(tx: Transaction, ground: Ground, turn_id: TurnId) -> None:
    """Nobody answered in time: the turn ends, and the person is told once."""
    turn = read_turn(tx, turn_id)
    assert turn is not None
    assert turn.question_seq is not None
    question = read_question(tx, turn.question_seq)
    by = "nobody answered"
    resolve_calls(tx, turn.session_id, turn_id, turn.epoch, by)
    move_turn(tx, turn_id, turn.epoch, TurnState.WAITING, TurnEvent.EXPIRED, reason=by)
    cause = f"expired:{turn.question_seq}"
    words = (phrases.expired(question.text),)
    owe(tx, turn.session_id, turn_id, cause, words, anchor=turn.anchor)
    open_next(tx, ground, turn.session_id)


def _answer_gateway(
    tx: Transaction, ground: Ground, session: Session, turn: TurnRow, entry: Entry, words: Words
) -> None:
    said = yes_or_no(words)
    if said is True:
        mark_attached(tx, entry.entry_id, turn.turn_id)
        facts = facts_of(tx, ground, turn, session)
        resume(tx, turn, facts, rule=None, reason=BY_PERSON)
        return
    if said is False:
        mark_attached(tx, entry.entry_id, turn.turn_id)
    resolve_calls(tx, turn.session_id, turn.turn_id, turn.epoch, "not continued")
    move_turn(
        tx,
        turn.turn_id,
        turn.epoch,
        TurnState.WAITING,
        TurnEvent.DECLINED,
        reason="declined" if said is False else "other words",
    )
    if said is False:
        cause = f"declined:{entry.entry_id}"
        words_back = (phrases.declined(),)
        owe(tx, turn.session_id, turn.turn_id, cause, words_back, anchor=words.anchor)
    open_next(tx, ground, turn.session_id)


def _answer_model(
    tx: Transaction, turn: TurnRow, entry: Entry, words: Words, question: Question
) -> None:
    assert question.call_id is not None
    mark_attached(tx, entry.entry_id, turn.turn_id)
    if _need_of(tx, turn, question.call_id) is Need.APPROVAL:
        _answer_approval(tx, turn, entry, words, question.call_id)
    else:
        result = Result(
            call_id=question.call_id, status=ResultStatus.OK, text=_answer_text(question, words)
        )
        add_result(tx, turn.session_id, turn.turn_id, turn.epoch, result)
    move_turn(tx, turn.turn_id, turn.epoch, TurnState.WAITING, TurnEvent.REPLIED, progressed=True)


def _need_of(tx: Transaction, turn: TurnRow, call_id: CallId) -> Need:
    records = [call_of(row) for row in tx.rows("calls_unresolved", turn_id=turn.turn_id)]
    return next(record.call.need for record in records if record.call.call_id == call_id)


def _answer_text(question: Question, words: Words) -> str:
    choice = picked_choice(question, words)
    if choice is None:
        return encoded({"status": "answered", "answer": words.text})
    return encoded({"status": "answered", "answer": choice.label, "choice": choice.choice_id})


def _answer_approval(
    tx: Transaction, turn: TurnRow, entry: Entry, words: Words, call_id: CallId
) -> None:
    said = yes_or_no(words)
    if said is True:
        person = entry.sender
        tx.change(
            "call_approve", turn_id=turn.turn_id, call_id=call_id, person=person, now=tx.now_ms
        )
        return
    denial = {"status": "denied", "reason": "the person said no" if said is False else words.text}
    text = f"{notes.MARK} {encoded(denial)}"
    result = Result(call_id=call_id, status=ResultStatus.ERROR, text=text)
    add_result(tx, turn.session_id, turn.turn_id, turn.epoch, result)
