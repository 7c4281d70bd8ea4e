"""How a turn goes back to the queue: it is resumed, or its question is answered."""

from dataclasses import replace

from koboshi.domain import notes, phrases, time_words
from koboshi.domain.approval import ruling_in
from koboshi.domain.call_fate import CallFate, fate_of
from koboshi.domain.command import QuestionKind, Ruling
from koboshi.domain.ids import CallId, Epoch
from koboshi.domain.inbox import Entry, Words, picked_choice, yes_or_no
from koboshi.domain.marks import MARK, unmarked
from koboshi.domain.recovery import TurnFacts
from koboshi.domain.session import Session
from koboshi.domain.transcript import Author, CallRecord, Note, Question, Result, ResultStatus
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import encoded
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.facts import facts_of, question_kind, trigger_of_turn
from koboshi.kernel.goal_gate import OTHER_WORDS
from koboshi.kernel.record import (
    add_result,
    add_step,
    attach_entry,
    mark_attached,
    move_turn,
    resolve_calls,
)
from koboshi.kernel.rows import (
    BY_PERSON,
    TurnRow,
    read_question,
    read_unresolved,
    whose_rules,
    worked_ms_of,
)
from koboshi.kernel.transaction import Transaction


def answer_question(
    tx: Transaction, context: VerbContext, session: Session, turn: TurnRow, entry: Entry
) -> bool:
    """Apply a message to the open question, once: the turn no longer waits. Returns whether that
    closed the turn. The caller continues with `go_on_after_reply`."""
    assert turn.question_seq is not None
    assert isinstance(entry.body, Words)
    question = read_question(tx, turn.question_seq)
    anchor = entry.body.anchor
    tx.change("turn_speaks", turn_id=turn.turn_id, person=entry.sender, anchor=anchor)
    if question.author is Author.GATEWAY:
        return _answer_gateway(tx, context, session, turn, entry, entry.body)
    _answer_model(tx, turn, entry, entry.body, question)
    return False


def rule_on_approval(
    tx: Transaction,
    turn: TurnRow,
    person: str,
    anchor: str,
    ruling: Ruling,
    *,
    speaks: bool = True,
) -> None:
    """Apply `/approve` or `/deny` to the open question, like a literal yes or no. An answer that
    was given in another place is not said in the chat: the turn stays that of its person."""
    assert turn.question_seq is not None
    question = read_question(tx, turn.question_seq)
    assert question_kind(tx, turn.turn_id, question) is QuestionKind.APPROVAL
    if speaks:
        tx.change("turn_speaks", turn_id=turn.turn_id, person=person, anchor=anchor)
    _rule(tx, turn, question, person, ruling)
    move_turn(tx, turn.turn_id, turn.epoch, TurnState.WAITING, TurnEvent.REPLIED, progressed=True)


def _answer_gateway(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    turn: TurnRow,
    entry: Entry,
    words: Words,
) -> bool:
    assert turn.question_seq is not None
    question = read_question(tx, turn.question_seq)
    picked = picked_choice(question, words)
    said = yes_or_no(words if picked is None else replace(words, choice_id=picked.choice_id))
    if said is True:
        mark_attached(tx, entry.entry_id, turn.turn_id)
        facts = facts_of(tx, context, turn, session)
        resume(tx, turn, facts, rule=None, reason=BY_PERSON)
        return False
    if said is False:
        mark_attached(tx, entry.entry_id, turn.turn_id)
    resolve_calls(tx, turn.session_id, turn.turn_id, turn.epoch, "not continued")
    move_turn(
        tx,
        turn.turn_id,
        turn.epoch,
        TurnState.WAITING,
        TurnEvent.DECLINED,
        reason="declined" if said is False else OTHER_WORDS,
    )
    if said is None and (begun := trigger_of_turn(tx, turn.turn_id)) is not None:
        told, cause = time_words.skipped_by_words(begun.name), f"declined:{entry.entry_id}"
        enqueue_delivery(tx, turn.session_id, turn.turn_id, cause, (told,), anchor=words.anchor)
    if said is False:
        cause = f"declined:{entry.entry_id}"
        words_back = (phrases.declined(),)
        enqueue_delivery(tx, turn.session_id, turn.turn_id, cause, words_back, anchor=words.anchor)
    return True


def _answer_model(
    tx: Transaction, turn: TurnRow, entry: Entry, words: Words, question: Question
) -> None:
    assert question.call_id is not None
    is_approval = question_kind(tx, turn.turn_id, question) is QuestionKind.APPROVAL
    if is_approval:
        _rule(tx, turn, question, entry.sender, ruling_in(words, question))
    else:
        result = Result(
            call_id=question.call_id, status=ResultStatus.OK, text=_answer_text(question, words)
        )
        add_result(tx, turn.session_id, turn.turn_id, turn.epoch, result)
    if words.files and not is_approval:
        # A file is a part of the answer: it is fetched and read like that of any message.
        attach_entry(tx, turn.session_id, turn.turn_id, turn.epoch, entry)
    else:
        mark_attached(tx, entry.entry_id, turn.turn_id)
    move_turn(tx, turn.turn_id, turn.epoch, TurnState.WAITING, TurnEvent.REPLIED, progressed=True)


def _answer_text(question: Question, words: Words) -> str:
    choice = picked_choice(question, words)
    if choice is None and words.files:
        follows = "it follows, with its files"
        return encoded({"status": "answered", "answer": words.text, "message": follows})
    if choice is None:
        return encoded({"status": "answered", "answer": words.text})
    return encoded({"status": "answered", "answer": choice.label, "choice": choice.choice_id})


def _rule(tx: Transaction, turn: TurnRow, question: Question, person: str, ruling: Ruling) -> None:
    """The yes or no of a person to an approval. A yes carries the seal of what was shown."""
    assert question.call_id is not None
    if not ruling.is_yes:
        _deny(tx, turn, question.call_id, ruling.words)
        return
    sealed = question.sealed
    tx.change(
        "call_approve",
        turn_id=turn.turn_id,
        call_id=question.call_id,
        person=person,
        seal=None if sealed is None else sealed.seal,
        now=tx.now_ms,
    )
    if ruling.keeps and sealed is not None and sealed.rule_key:
        calls = (each.call for each in read_unresolved(tx, turn.turn_id))
        tx.change(
            "rule_keep",
            session_id=whose_rules(tx, turn.session_id),
            tool=next(each.tool for each in calls if each.call_id == question.call_id),
            rule_key=sealed.rule_key,
            shown=question.text[sealed.begin : sealed.end],
            person=person,
            now=tx.now_ms,
        )


def _deny(tx: Transaction, turn: TurnRow, call_id: CallId, words: str) -> None:
    """Give the call its result, with the person's words if they said more than no."""
    denial = {"status": "denied", "reason": unmarked(words) or "the person said no"}
    text = f"{MARK} {encoded(denial)}"
    result = Result(call_id=call_id, status=ResultStatus.ERROR, text=text)
    add_result(tx, turn.session_id, turn.turn_id, turn.epoch, result)


def resume(
    tx: Transaction,
    turn: TurnRow,
    facts: TurnFacts,
    *,
    rule: str | None,
    not_before_ms: int = 0,
    reason: str | None = None,
) -> None:
    """Put the turn back into the queue, with one note for the epoch that ended early."""
    is_dead = turn.state is TurnState.RUNNING
    # A foreign agent that works on was not interrupted: nothing is told, and no death is counted.
    is_cut = not facts.is_attached
    worked_ms = worked_ms_of(tx, turn)
    settle_dead_calls(tx, turn, worked_ms)
    if turn.state is not TurnState.QUEUED and is_cut:  # a queued turn has its note, or needs none
        leave_note(tx, turn, facts)
    move_turn(
        tx,
        turn.turn_id,
        turn.epoch,
        turn.state,
        TurnEvent.RESUMED,
        rule=rule,
        reason=reason or facts.interruption,
        worked_ms=worked_ms,
        recovered=is_dead,
        died=is_dead and is_cut,
        progressed=reason == BY_PERSON,
        renewed=reason == BY_PERSON,
        not_before_ms=not_before_ms,
    )


def settle_dead_calls(tx: Transaction, turn: TurnRow, died_ms: int) -> None:
    """Give each call under way that must not be repeated the result "unknown". The others are taken
    up again."""
    under_way = [record for record in read_unresolved(tx, turn.turn_id) if record.is_under_way]
    if under_way:
        tx.change("call_died", turn_id=turn.turn_id, died_ms=died_ms)
    for record in under_way:
        if fate_of(record.call.effect) is CallFate.UNKNOWN:
            add_result(tx, turn.session_id, turn.turn_id, turn.epoch, _unknown(record))


def _unknown(record: CallRecord) -> Result:
    started = phrases.clock_words(record.started_ms or 0)
    text = notes.outcome_unknown(record.call.tool, started=started)
    return Result(call_id=record.call.call_id, status=ResultStatus.UNKNOWN, text=text)


def leave_note(tx: Transaction, turn: TurnRow, facts: TurnFacts) -> None:
    """Write the recovery note of an epoch, if it has none yet."""
    if turn.epoch == 0 or tx.row("note_exists", turn_id=turn.turn_id, epoch=turn.epoch):
        return
    text = notes.recovery(
        facts.interruption,
        has_new_message=facts.message_waits,
        is_interactive=facts.is_interactive,
    )
    note = Note(cause=notes.RECOVERY, text=text)
    add_step(tx, turn.session_id, turn.turn_id, Epoch(turn.epoch), notes.RECOVERY, note)
