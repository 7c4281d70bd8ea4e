"""A person's command: what it must know, its effect and its reply, in one transaction."""

from collections.abc import Sequence
from dataclasses import replace

from koboshi.domain.command import (
    Command,
    CommandName,
    JobGlance,
    OperatorAction,
    QuestionEnd,
    QuestionGlance,
    QuestionKind,
    SessionFacts,
    TurnGlance,
)
from koboshi.domain.ids import ProcessId, SessionId, shown
from koboshi.domain.inbox import Words
from koboshi.domain.process import ProcessState
from koboshi.domain.session import Busy, Session
from koboshi.domain.turn import TurnEvent
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import TurnRow, maybe_number, number, process_of, text, turn_of
from koboshi.kernel.facts import is_worked_on, verdict_now
from koboshi.kernel.held_up import read_hold_up
from koboshi.kernel.operator_action import apply_will, read_failed, retry_turn
from koboshi.kernel.processes import ask_end
from koboshi.kernel.questions import question_kind, rule_on_approval
from koboshi.kernel.read import (
    read_last_question,
    read_open_turn,
    read_question,
    read_request,
)
from koboshi.kernel.record import enqueue_delivery
from koboshi.kernel.senders import may_run
from koboshi.kernel.sessions import cut_session, set_session
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.kernel.turn_story import story_of
from koboshi.kernel.workers import ask_restart
from koboshi.ports.channel import Inbound, Receipt
from koboshi.ports.store import Respond

JOBS_MAX = 20


def carry_out(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    inbound: Inbound,
    receipt: Receipt,
    command: Command,
    respond: Respond,
) -> None:
    """A command's effect and its reply, in the transaction that stores it."""
    words, open_row = inbound.words, read_open_turn(tx, session.session_id)
    response = respond(command, _facts(tx, context, session, open_row, inbound, command))
    cause = f"command:{receipt.entry_id}"
    enqueue_delivery(tx, session.session_id, None, cause, (response.reply,), anchor=words.anchor)
    if response.cut is not None:
        cut_session(tx, context, session, response.cut)
    if response.ruling is not None:
        assert open_row is not None, "a ruling on a question that nobody asked"
        rule_on_approval(tx, open_row, inbound.sender, words.anchor, response.ruling)
    if response.restarts and context.worker_id is not None:
        ask_restart(tx, context.worker_id, f"entry:{receipt.entry_id}")
    if response.settings is not None:
        set_session(tx, session.session_id, response.settings)
    if response.will is not None:
        assert open_row is not None, "a will about a turn that is not there"
        _apply_will(tx, context, open_row, inbound, response.will)
    if response.retry is not None:
        retry_turn(tx, context, session, inbound.sender, words, response.retry)
    if response.end_process is not None:
        ask_end(tx, response.end_process)


def _apply_will(
    tx: Transaction, context: VerbContext, turn: TurnRow, inbound: Inbound, will: OperatorAction
) -> None:
    """From here on the turn is theirs who wants it to go on, and is answered where they said so."""
    if will is OperatorAction.RESUME:
        anchor = inbound.words.anchor
        tx.change("turn_speaks", turn_id=turn.turn_id, person=inbound.sender, anchor=anchor)
    apply_will(tx, context, turn, will, "the person")


def _facts(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    open_row: TurnRow | None,
    inbound: Inbound,
    command: Command,
) -> SessionFacts:
    session_id, words = session.session_id, inbound.words
    newest = [turn_of(row) for row in tx.rows("turn_newest", session_id=session_id, limit=2)]
    jobs = _jobs(tx, session_id)
    is_stop = command.name is CommandName.STOP and open_row is None
    unsent, on_the_way = _answers_on_the_way(tx, session_id) if is_stop else (0, 0)
    return SessionFacts(
        session=session,
        now_ms=tx.now_ms,
        open_turn=None if open_row is None else _open_glance(tx, context, session, open_row),
        last_turn=_glance(tx, context, newest[0]) if newest else None,
        waiting=tx.number("entries_waiting_count", session_id=session_id),
        owed=tx.number("deliveries_unsettled_count", session_id=session_id),
        unsent=unsent,
        on_the_way=on_the_way,
        running_processes=tuple(
            f"{shown('process', job.process_id)} {job.command}"
            for job in jobs
            if job.ended_ms is None
        ),
        question=_open_question(tx, open_row, words) or _expired_question(tx, newest),
        jobs=jobs,
        named_job=_named_job(tx, session_id, command.process_id),
        failed=read_failed(tx, context, session),
        sender=inbound.sender,
        busy=Busy(context.world.busy),
        policy=context.world.policy.recovery,
        listen=context.listen_on(session.route.channel),
        is_group=inbound.is_group,
        is_owner=context.world.is_owner(session.route.channel, inbound.sender),
    )


def _answers_on_the_way(tx: Reading, session_id: SessionId) -> tuple[int, int]:
    """How many parts of answers have certainly not been sent, and how many may have been."""
    (row,) = tx.rows("answers_unsent", session_id=session_id)
    return number(row[0]), number(row[1])


def _jobs(tx: Reading, session_id: SessionId) -> tuple[JobGlance, ...]:
    rows = tx.rows("session_processes", session_id=session_id, limit=JOBS_MAX)
    return tuple(
        JobGlance(
            process_id=ProcessId(number(process_id)),
            command=text(command),
            state=ProcessState(text(state)),
            started_ms=number(started_ms),
            ended_ms=maybe_number(ended_ms),
            exit_code=maybe_number(exit_code),
        )
        for process_id, command, state, started_ms, ended_ms, exit_code in rows
    )


def _named_job(
    tx: Reading, session_id: SessionId, process_id: ProcessId | None
) -> JobGlance | None:
    row = None if process_id is None else tx.row("process_by_id", process_id=process_id)
    process = None if row is None else process_of(row)
    if process is None or process.session_id != session_id or process.is_foreground:
        return None
    return JobGlance(
        process_id=process.process_id,
        command=process.command,
        state=process.state,
        started_ms=process.started_ms,
        ended_ms=process.ended_ms,
        exit_code=process.exit_code,
    )


def _open_question(tx: Transaction, turn: TurnRow | None, words: Words) -> QuestionGlance | None:
    if turn is None or turn.question_seq is None:
        return None
    is_other = words.question is not None and words.question != turn.question_seq
    question = read_question(tx, turn.question_seq)
    return QuestionGlance(
        kind=question_kind(tx, turn.turn_id, question),
        text=question.text,
        end=QuestionEnd.REPLACED if is_other else None,
    )


def _expired_question(tx: Transaction, newest: Sequence[TurnRow]) -> QuestionGlance | None:
    """The approval that nobody gave, if that ended one of these turns."""
    for turn in newest:
        question = read_last_question(tx, turn) if turn.event == TurnEvent.EXPIRED else None
        if question is None:
            continue
        kind = question_kind(tx, turn.turn_id, question)
        if kind is QuestionKind.APPROVAL:
            return QuestionGlance(kind=kind, text=question.text, end=QuestionEnd.EXPIRED)
    return None


def _open_glance(
    tx: Transaction, context: VerbContext, session: Session, turn: TurnRow
) -> TurnGlance:
    is_allowed = may_run(tx, context, session.route.channel, turn)
    return replace(_glance(tx, context, turn), is_allowed=is_allowed)


def _glance(tx: Transaction, context: VerbContext, turn: TurnRow) -> TurnGlance:
    return TurnGlance(
        turn_id=turn.turn_id,
        state=turn.state,
        request=read_request(tx, turn),
        opened_ms=turn.opened_ms,
        changed_ms=turn.changed_ms,
        steps=tx.number(
            "steps_count",
            session_id=turn.session_id,
            first_seq=turn.first_seq,
            turn_id=turn.turn_id,
        ),
        reason=turn.reason,
        is_worked_on=is_worked_on(tx, turn),
        is_claimed_before=turn.epoch > 0,
        event=turn.event,
        deaths=turn.crash_streak,
        story=story_of(tx, turn),
        held_up=read_hold_up(tx, context, turn),
        verdict=verdict_now(tx, context, turn),
    )
