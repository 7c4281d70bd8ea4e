"""Schedules, occasions and goals as typed values."""

import json

from koboshi.domain.goal import Goal, GoalState
from koboshi.domain.ids import (
    Epoch,
    Generation,
    GoalId,
    ProcessId,
    ScheduleId,
    SessionId,
    TurnId,
    WorkerId,
)
from koboshi.domain.schedule import (
    Late,
    Occasion,
    OccasionVerdict,
    Order,
    Overlap,
    Schedule,
    ScheduleKind,
    ScheduleState,
    WorkPlace,
)
from koboshi.kernel.decode import maybe_number, maybe_text, number, text
from koboshi.kernel.transaction import Reading, Row

SCHEDULE_COLUMNS = 27
GOAL_COLUMNS = 24


def schedule_of(row: Row) -> Schedule:
    schedule_id, session_id, person, *ordered = row[:14]
    state, reason, revision, due_ms, again_of, tries, failures, *made = row[14:SCHEDULE_COLUMNS]
    alerted_ms, created_by, created_ms, plain, own_session, thread_why = made
    own = maybe_number(own_session)
    return Schedule(
        schedule_id=ScheduleId(number(schedule_id)),
        session_id=SessionId(number(session_id)),
        person=text(person),
        order=_order_of((*ordered, plain)),
        state=ScheduleState(text(state)),
        reason=maybe_text(reason),
        revision=number(revision),
        due_ms=maybe_number(due_ms),
        again_of=maybe_number(again_of),
        tries=number(tries),
        failures=number(failures),
        alerted_ms=maybe_number(alerted_ms),
        created_by=text(created_by),
        created_ms=number(created_ms),
        own_session=None if own is None else SessionId(own),
        thread_why=maybe_text(thread_why),
    )


def _order_of(row: Row) -> Order:
    name, kind, expression, zone, prompt, command, place, late, *rest = row
    late_ms, overlap, quiet, plain = rest
    return Order(
        name=text(name),
        kind=ScheduleKind(text(kind)),
        expression=text(expression),
        zone=text(zone),
        prompt=text(prompt),
        command=text(command),
        place=WorkPlace(text(place)),
        late=Late(text(late)),
        late_ms=maybe_number(late_ms),
        overlap=Overlap(text(overlap)),
        quiet=bool(quiet),
        is_plain=bool(plain),
    )


def read_schedule(tx: Reading, schedule_id: ScheduleId) -> Schedule | None:
    row = tx.row("schedule_by_id", schedule_id=schedule_id)
    return None if row is None else schedule_of(row)


def occasion_of(row: Row) -> Occasion:
    schedule_id, due_ms, revision, verdict, rule, count, decided_ms, entry_id, turn_id = row
    return Occasion(
        schedule_id=ScheduleId(number(schedule_id)),
        due_ms=number(due_ms),
        revision=number(revision),
        verdict=OccasionVerdict(text(verdict)),
        rule=text(rule),
        count=number(count),
        decided_ms=number(decided_ms),
        entry_id=maybe_number(entry_id),
        turn_id=maybe_number(turn_id),
    )


def goal_of(row: Row) -> Goal:
    goal_id, session_id, generation, person, words, criteria, state, reason, rule = row[:9]
    step, steps_max, tokens, tokens_max, process, until_ms, judged, revision = row[9:17]
    worker_id, epoch, tries, unreadable, not_before_ms, created_ms, changed_ms = row[17:24]
    by, on, turn = maybe_number(worker_id), maybe_number(process), maybe_number(judged)
    return Goal(
        goal_id=GoalId(number(goal_id)),
        session_id=SessionId(number(session_id)),
        generation=Generation(number(generation)),
        person=text(person),
        text=text(words),
        criteria=tuple(map(str, json.loads(text(criteria)))),
        state=GoalState(text(state)),
        reason=maybe_text(reason),
        rule=maybe_text(rule),
        step=number(step),
        steps_max=number(steps_max),
        tokens=number(tokens),
        tokens_max=number(tokens_max),
        wait_process=None if on is None else ProcessId(on),
        wait_until_ms=maybe_number(until_ms),
        judged_turn=None if turn is None else TurnId(turn),
        revision=number(revision),
        worker_id=None if by is None else WorkerId(by),
        epoch=Epoch(number(epoch)),
        tries=number(tries),
        unreadable=number(unreadable),
        not_before_ms=number(not_before_ms),
        created_ms=number(created_ms),
        changed_ms=number(changed_ms),
    )


def read_goal(tx: Reading, goal_id: GoalId) -> Goal | None:
    row = tx.row("goal_by_id", goal_id=goal_id)
    return None if row is None else goal_of(row)


def goal_in(tx: Reading, session_id: SessionId) -> Goal | None:
    """The goal of a session that has not ended."""
    row = tx.row("goal_of_session", session_id=session_id)
    return None if row is None else goal_of(row)
