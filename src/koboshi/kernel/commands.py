"""The facts that a person's command is answered from. Its effect is in `accept.py`."""

from collections.abc import Sequence
from dataclasses import replace

from koboshi.domain.child import glance
from koboshi.domain.command import (
    ChainGlance,
    Command,
    CommandName,
    JobGlance,
    QuestionEnd,
    QuestionGlance,
    QuestionKind,
    SessionFacts,
    TurnGlance,
)
from koboshi.domain.ids import ProcessId, SessionId, shown
from koboshi.domain.inbox import Words
from koboshi.domain.memory import MemoryView
from koboshi.domain.process import ProcessState
from koboshi.domain.role import Role
from koboshi.domain.rule import ApprovalRule
from koboshi.domain.session import Busy, Session
from koboshi.domain.turn import TurnEvent
from koboshi.domain.usage import Usage, begin_of_day
from koboshi.domain.wish import Calendar
from koboshi.kernel.approvals import rules_of
from koboshi.kernel.asides import asides_at_work, names_at_work
from koboshi.kernel.child_rows import open_children
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_text, maybe_number, number, text
from koboshi.kernel.facts import is_worked_on, may_run, no_ruling, question_kind, verdict_now
from koboshi.kernel.failed_turns import read_failed
from koboshi.kernel.held_up import read_hold_up
from koboshi.kernel.memory_rows import find_scope, scope_in, view_of
from koboshi.kernel.model_rows import benches_in, usage_in
from koboshi.kernel.occasions import waiting_occasions
from koboshi.kernel.process_rows import read_process
from koboshi.kernel.purses import purses_today
from koboshi.kernel.rows import (
    TurnRow,
    is_shown_in,
    read_last_question,
    read_open_turn,
    read_question,
    read_request,
    turn_of,
)
from koboshi.kernel.timed_rows import goal_in, schedule_of
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.kernel.turn_story import story_of
from koboshi.ports.channel import Inbound

JOBS_MAX = 20
RULES_MAX = 50
CHILDREN_TOLD = 10
SCHEDULES_MAX = 50
USAGE_DAYS = 30


def command_facts(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    open_row: TurnRow | None,
    inbound: Inbound,
    command: Command,
    asked_row: TurnRow | None,
) -> SessionFacts:
    """`asked_row` is the turn whose question a ruling would answer: the open one, or one of another
    chat that is asked about in this one."""
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
        question=_open_question(tx, session, asked_row, words) or _expired_question(tx, newest),
        jobs=jobs,
        named_job=_named_job(tx, session_id, command.process_id),
        failed=read_failed(tx, context, session),
        sender=inbound.sender,
        busy=Busy(context.world.busy),
        policy=context.world.policy.recovery,
        listen=context.listen_on(session.route.channel),
        agents=context.world.agents,
        agent=context.world.agent,
        chain=_chain(tx, context, session_id, command),
        is_group=inbound.is_group,
        role=context.role_of(tx, session.route.channel, inbound.sender) or Role.MEMBER,
        no_ruling=None
        if asked_row is None
        else no_ruling(tx, context, session, asked_row, inbound.sender),
        rules=_rules(tx, session_id) if command.name is CommandName.RULES else (),
        calendar=_calendar(tx, context, session, inbound.sender),
        goal=goal_in(tx, session_id),
        children=_children(tx, session),
        memory=_memory(tx, context, session) if command.name is CommandName.MEMORY else None,
    )


def _children(tx: Reading, session: Session) -> tuple[str, ...]:
    """Those that work or wait for the conversation, and for what works beside it."""
    found = [*open_children(tx, session.session_id)]
    for each in asides_at_work(tx, session):
        found += open_children(tx, each.session_id)
    told = []
    for child in found[:CHILDREN_TOLD]:
        turn = None if child.own_session is None else read_open_turn(tx, child.own_session)
        is_asking = turn is not None and turn.question_seq is not None
        told.append(glance(child, tx.now_ms, is_asking=is_asking))
    more = len(found) - len(told)
    return (*told, f"{more} more") if more else tuple(told)


def _memory(tx: Reading, context: VerbContext, session: Session) -> MemoryView | None:
    row = find_scope(tx, scope_in(tx, context, session))
    return None if row is None else view_of(tx, context.home, row)


def _calendar(tx: Reading, context: VerbContext, session: Session, person: str) -> Calendar:
    """What the chat has of schedules. A member sees only their own."""
    channel, session_id = session.route.channel, session.session_id
    known = tx.row("zone_of_person", channel=channel, person=person)
    zone = first_text(known) or ""
    is_owner = context.role_of(tx, channel, person) is Role.OWNER
    rows = tx.rows("schedules_of_session", session_id=session_id, limit=SCHEDULES_MAX)
    waiting = waiting_occasions(tx, session_id)
    return Calendar(
        zone=context.zone_or_own(zone),
        zone_name=zone,
        is_zone_asked=known is not None,
        schedules=tuple(
            each for each in map(schedule_of, rows) if is_owner or each.person == person
        ),
        waiting=tuple(each.schedule.order.name for each in waiting),
        at_work=names_at_work(tx, session),
    )


def _chain(
    tx: Reading, context: VerbContext, session_id: SessionId, command: Command
) -> ChainGlance:
    is_usage = command.name is CommandName.USAGE
    return ChainGlance(
        models=context.world.models,
        benches=benches_in(tx) if command.name is CommandName.MODEL else (),
        usage=_usage(tx, context, session_id) if is_usage else Usage(),
        prices=context.world.prices,
        purses=purses_today(tx, context) if command.name is CommandName.BUDGET else (),
        budget=context.world.budget,
    )


def _usage(tx: Reading, context: VerbContext, session_id: SessionId) -> Usage:
    zone = context.zone_named("")
    today_ms = begin_of_day(tx.now_ms, zone)
    month_ms = begin_of_day(tx.now_ms, zone, days_before=USAGE_DAYS - 1)
    return Usage(today=usage_in(tx, session_id, today_ms), month=usage_in(tx, session_id, month_ms))


def _rules(tx: Reading, session_id: SessionId) -> tuple[ApprovalRule, ...]:
    return rules_of(tx, session_id, RULES_MAX)


def _answers_on_the_way(tx: Reading, session_id: SessionId) -> tuple[int, int]:
    """How many parts of answers have certainly not been sent, and how many may have been."""
    ((unsent, sent),) = tx.rows("answers_unsent", session_id=session_id)
    return number(unsent), number(sent)


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
    process = None if process_id is None else read_process(tx, process_id)
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


def _open_question(
    tx: Transaction, session: Session, turn: TurnRow | None, words: Words
) -> QuestionGlance | None:
    if turn is None or turn.question_seq is None:
        return None
    is_other = words.question is not None and words.question != turn.question_seq
    question = read_question(tx, turn.question_seq)
    return QuestionGlance(
        kind=question_kind(tx, turn.turn_id, question),
        text=question.text,
        end=QuestionEnd.REPLACED if is_other else None,
        is_elsewhere=question.sealed is not None and question.sealed.is_elsewhere,
        is_shown=is_shown_in(tx, session, turn),
        may_be_kept=question.sealed is not None and bool(question.sealed.rule_key),
    )


def _expired_question(tx: Transaction, newest: Sequence[TurnRow]) -> QuestionGlance | None:
    """The approval that expired, if that ended one of these turns."""
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
        steps=tx.number("steps_count", **turn.span),
        reason=turn.reason,
        is_worked_on=is_worked_on(tx, turn),
        is_claimed_before=turn.epoch > 0,
        event=turn.event,
        deaths=turn.crash_streak,
        story=story_of(tx, turn),
        held_up=read_hold_up(tx, context, turn),
        verdict=verdict_now(tx, context, turn),
    )
