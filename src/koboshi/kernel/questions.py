"""What a person's words do to the question that a turn waits for."""

from koboshi.domain import notes, phrases
from koboshi.domain.command import QuestionKind, Ruling
from koboshi.domain.ids import CallId, TurnId
from koboshi.domain.inbox import Entry, Words, picked_choice, yes_or_no
from koboshi.domain.session import Session
from koboshi.domain.transcript import Author, Need, Question, Result, ResultStatus
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import TurnRow, call_of, encoded
from koboshi.kernel.facts import BY_PERSON, facts_of
from koboshi.kernel.read import read_question, read_turn
from koboshi.kernel.record import (
    add_result,
    enqueue_delivery,
    mark_attached,
    move_turn,
    readmit_reports,
    resolve_calls,
)
from koboshi.kernel.resume import resume
from koboshi.kernel.telling import go_on_after
from koboshi.kernel.transaction import Reading, Transaction


def answer_question(
    tx: Transaction, context: VerbContext, session: Session, turn: TurnRow, entry: Entry
) -> None:
    """Apply the words to the open question, once: the turn waits no longer."""
    assert turn.question_seq is not None
    assert isinstance(entry.body, Words)
    question = read_question(tx, turn.question_seq)
    anchor = entry.body.anchor
    tx.change("turn_speaks", turn_id=turn.turn_id, person=entry.sender, anchor=anchor)
    if question.author is Author.GATEWAY:
        _answer_gateway(tx, context, session, turn, entry, entry.body)
    else:
        _answer_model(tx, turn, entry, entry.body, question)
    readmit_reports(tx, context, session.session_id)


def rule_on_approval(
    tx: Transaction, turn: TurnRow, person: str, anchor: str, ruling: Ruling
) -> None:
    """Apply `/approve` or `/deny` to the open question, as a literal yes or no would be."""
    assert turn.question_seq is not None
    question = read_question(tx, turn.question_seq)
    assert question_kind(tx, turn.turn_id, question) is QuestionKind.APPROVAL
    assert question.call_id is not None
    tx.change("turn_speaks", turn_id=turn.turn_id, person=person, anchor=anchor)
    if ruling.is_yes:
        _allow(tx, turn, question.call_id, person)
    else:
        _deny(tx, turn, question.call_id, ruling.words)
    move_turn(tx, turn.turn_id, turn.epoch, TurnState.WAITING, TurnEvent.REPLIED, progressed=True)


def question_kind(tx: Reading, turn_id: TurnId, question: Question) -> QuestionKind:
    """What a question of the turn wants to know."""
    if question.author is Author.GATEWAY:
        return QuestionKind.OFFER
    calls = (call_of(row).call for row in tx.rows("calls_of_turn", turn_id=turn_id))
    need = next(call.need for call in calls if call.call_id == question.call_id)
    return QuestionKind.APPROVAL if need is Need.APPROVAL else QuestionKind.ANSWER


def expire_question(tx: Transaction, context: VerbContext, turn_id: TurnId) -> None:
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
    enqueue_delivery(tx, turn.session_id, turn_id, cause, words, anchor=turn.anchor)
    go_on_after(tx, context, turn.session_id, turn.turn_id)


def _answer_gateway(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    turn: TurnRow,
    entry: Entry,
    words: Words,
) -> None:
    said = yes_or_no(words)
    if said is True:
        mark_attached(tx, entry.entry_id, turn.turn_id)
        facts = facts_of(tx, context, turn, session)
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
        enqueue_delivery(tx, turn.session_id, turn.turn_id, cause, words_back, anchor=words.anchor)
    go_on_after(tx, context, turn.session_id, turn.turn_id)


def _answer_model(
    tx: Transaction, turn: TurnRow, entry: Entry, words: Words, question: Question
) -> None:
    assert question.call_id is not None
    mark_attached(tx, entry.entry_id, turn.turn_id)
    if question_kind(tx, turn.turn_id, question) is QuestionKind.APPROVAL:
        said = yes_or_no(words)
        if said is True:
            _allow(tx, turn, question.call_id, entry.sender)
        else:
            _deny(tx, turn, question.call_id, "" if said is False else words.text)
    else:
        result = Result(
            call_id=question.call_id, status=ResultStatus.OK, text=_answer_text(question, words)
        )
        add_result(tx, turn.session_id, turn.turn_id, turn.epoch, result)
    move_turn(tx, turn.turn_id, turn.epoch, TurnState.WAITING, TurnEvent.REPLIED, progressed=True)


def _answer_text(question: Question, words: Words) -> str:
    choice = picked_choice(question, words)
    if choice is None:
        return encoded({"status": "answered", "answer": words.text})
    return encoded({"status": "answered", "answer": choice.label, "choice": choice.choice_id})


def _allow(tx: Transaction, turn: TurnRow, call_id: CallId, person: str) -> None:
    tx.change("call_approve", turn_id=turn.turn_id, call_id=call_id, person=person, now=tx.now_ms)


def _deny(tx: Transaction, turn: TurnRow, call_id: CallId, words: str) -> None:
    """The call gets its result, which carries what the person said beside a plain no."""
    denial = {"status": "denied", "reason": words or "the person said no"}
    text = f"{notes.MARK} {encoded(denial)}"
    result = Result(call_id=call_id, status=ResultStatus.ERROR, text=text)
    add_result(tx, turn.session_id, turn.turn_id, turn.epoch, result)
