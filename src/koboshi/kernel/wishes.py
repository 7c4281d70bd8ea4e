"""What a person, the agent or the operator wants of schedules and goals, in one transaction.

A wish has a key, the entry or the call that it comes from. Carried out a second time, after a kill
behind its commit, it changes nothing and is answered as the first time.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import TypeAlias

from koboshi.domain import time_words
from koboshi.domain.goal import GoalEvent, GoalRule, GoalState
from koboshi.domain.ids import ChannelName
from koboshi.domain.inbox import Entry, EntryKind, Words
from koboshi.domain.role import Role
from koboshi.domain.schedule import (
    Order,
    Schedule,
    ScheduleEvent,
    ScheduleState,
    Trigger,
)
from koboshi.domain.session import Session
from koboshi.domain.wish import (
    AddCriterion,
    BeginGoal,
    ChangeSchedule,
    MakeSchedule,
    MoveGoal,
    MoveSchedule,
    RunSchedule,
    TellZone,
    TimedWish,
    Wisher,
    WishOutcome,
    WishStatus,
    next_times,
    why_no_goal,
    why_no_order,
    why_not_their_goal,
    why_not_theirs,
)
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import encoded, first_text
from koboshi.kernel.goal_gate import move_goal, pause_goal
from koboshi.kernel.keys import lock_session
from koboshi.kernel.occasions import move_schedule, next_due, words_of_waiting
from koboshi.kernel.record import NOT_STORED
from koboshi.kernel.rows import read_session
from koboshi.kernel.timed_rows import goal_in, goal_of, read_schedule, schedule_of
from koboshi.kernel.transaction import Reading, Transaction, Value
from koboshi.ports.wakeups import GOALS, JOURNAL, SCHEDULES

RunNow: TypeAlias = Callable[[Transaction, VerbContext, Schedule, str], bool]
FileTimed: TypeAlias = Callable[[Transaction, VerbContext, Session, Entry], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """The effects of the layer above that a wish may need (`filing.py`)."""

    run_now: RunNow
    file_timed: FileTimed


def zone_of_person(tx: Reading, channel: str, person: str) -> str:
    """The zone that the person told; empty if none."""
    return first_text(tx.row("zone_of_person", channel=channel, person=person)) or ""


def wisher_in(
    tx: Reading, context: VerbContext, channel: ChannelName, person: str, *, is_operator: bool
) -> Wisher:
    role = Role.OWNER if is_operator else context.role_of(tx, channel, person) or Role.MEMBER
    return Wisher(
        person=person,
        role=role,
        schedules=tx.number("schedules_of_person", channel=channel, person=person),
        schedules_max=context.schedules_max,
        now_ms=tx.now_ms,
        channel=channel,
        is_operator=is_operator,
    )


def grant(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    wisher: Wisher,
    wish: TimedWish,
    by: str,
    filing: Filing,
) -> WishOutcome:
    """Do what is wished for, if the person may. `by` is the key of the wish."""
    match wish:
        case MakeSchedule(order=order, asks_zone=asks_zone):
            outcome = _make(tx, context, session, wisher, order, by)
            if asks_zone and outcome.status is WishStatus.DONE:
                tx.change("zone_asked", channel=wisher.channel, person=wisher.person)
            return outcome
        case TellZone(zone=zone):
            return _tell_zone(tx, context, session, wisher, zone)
        case BeginGoal(text=text):
            return _begin_goal(tx, context, session, wisher, text, by, filing)
        case MoveGoal(event=event):
            return _move_goal(tx, context, session, wisher, event)
        case AddCriterion(text=text):
            return _add_criterion(tx, session, wisher, text)
        case ChangeSchedule() | MoveSchedule() | RunSchedule():
            schedule = read_schedule(tx, wish.schedule_id)
            if schedule is None or schedule.state is ScheduleState.REMOVED:
                return _not_found("There is no such schedule. /cron lists them.")
            channel = read_session(tx, schedule.session_id).route.channel
            refusal = why_not_theirs(schedule, channel, wisher)
            if refusal is not None:
                return _refused(refusal)
            lock_session(tx, schedule.session_id)
            return _touch(tx, context, wisher, schedule, wish, by, filing)


def _refused(words: str) -> WishOutcome:
    return WishOutcome(status=WishStatus.REFUSED, words=words)


def _not_found(words: str) -> WishOutcome:
    return WishOutcome(status=WishStatus.NOT_FOUND, words=words)


def _order_values(order: Order) -> dict[str, Value]:
    return {
        "name": order.name,
        "kind": order.kind,
        "expression": order.expression,
        "zone": order.zone,
        "prompt": order.prompt,
        "command": order.command,
        "place": order.place,
        "late": order.late,
        "late_ms": order.late_ms,
        "overlap": order.overlap,
        "quiet": int(order.quiet),
        "plain": int(order.is_plain),
    }


def _make(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    wisher: Wisher,
    order: Order,
    by: str,
) -> WishOutcome:
    before = tx.row("schedule_by_maker", created_by=by)
    if before is not None:
        return _told(context, schedule_of(before), tx.now_ms, WishStatus.SAME)
    zone = context.zone_or_own(order.zone)
    refusal = why_no_order(order, zone, wisher, is_new=True)
    if refusal is not None:
        return _refused(refusal)
    times = next_times(order, zone, tx.now_ms, tx.now_ms)
    tx.change(
        "schedule_insert",
        session_id=session.session_id,
        person=wisher.person,
        **_order_values(order),
        due_ms=times[0],
        zone_rules=context.zone_rules,
        created_by=by,
        now=tx.now_ms,
    )
    tx.hints.update((SCHEDULES, JOURNAL))
    row = tx.row("schedule_by_maker", created_by=by)
    assert row is not None
    return _told(context, schedule_of(row), tx.now_ms, WishStatus.DONE)


def _told(context: VerbContext, schedule: Schedule, now_ms: int, status: WishStatus) -> WishOutcome:
    order = schedule.order
    zone = context.zone_or_own(order.zone)
    times = next_times(order, zone, now_ms, schedule.created_ms)
    words = time_words.made(schedule, times, zone)
    return WishOutcome(status=status, words=words, schedule=schedule, times=times)


def _touch(
    tx: Transaction,
    context: VerbContext,
    wisher: Wisher,
    schedule: Schedule,
    wish: ChangeSchedule | MoveSchedule | RunSchedule,
    by: str,
    filing: Filing,
) -> WishOutcome:
    name = f"{schedule.shown} {time_words.quoted(schedule.order.name)}"
    match wish:
        case RunSchedule():
            is_new = filing.run_now(tx, context, schedule, by)
            status = WishStatus.DONE if is_new else WishStatus.SAME
            return WishOutcome(status=status, words=f"{name} runs now.", schedule=schedule)
        case ChangeSchedule(order=order):
            return _change(tx, context, wisher, schedule, order)
        case MoveSchedule(event=event):
            return _move(tx, context, schedule, event, name)


def _change(
    tx: Transaction, context: VerbContext, wisher: Wisher, schedule: Schedule, order: Order
) -> WishOutcome:
    if order == schedule.order and schedule.state is ScheduleState.ARMED:
        return _told(context, schedule, tx.now_ms, WishStatus.SAME)
    zone = context.zone_or_own(order.zone)
    refusal = why_no_order(order, zone, wisher, is_new=False)
    if refusal is not None:
        return _refused(refusal)
    waits = words_of_waiting(tx, context, schedule)
    times = next_times(order, zone, tx.now_ms, schedule.created_ms)
    tx.change("schedule_reorder", schedule_id=schedule.schedule_id, **_order_values(order))
    move_schedule(tx, context, schedule, ScheduleEvent.CHANGED, due_ms=times[0])
    changed = read_schedule(tx, schedule.schedule_id)
    assert changed is not None
    outcome = _told(context, changed, tx.now_ms, WishStatus.DONE)
    return replace(outcome, words=outcome.words + waits)


def _move(
    tx: Transaction, context: VerbContext, schedule: Schedule, event: ScheduleEvent, name: str
) -> WishOutcome:
    is_known = (schedule.state, event) in _SAID
    if not is_known:
        return _refused(f"{name} is {schedule.state}.")
    due_ms = None
    if event is ScheduleEvent.RESUMED:
        due_ms = next_due(context, schedule, tx.now_ms)
        if due_ms is None:
            return _refused(f"The time of {name} is over.")
    waits = words_of_waiting(tx, context, schedule) if event is ScheduleEvent.REMOVED else ""
    why = "by a person" if event is ScheduleEvent.PAUSED else None
    move_schedule(tx, context, schedule, event, due_ms=due_ms, reason=why)
    moved = read_schedule(tx, schedule.schedule_id)
    assert moved is not None
    if due_ms is not None:
        tx.change("schedule_counted", schedule_id=schedule.schedule_id, failures=0, alerted_ms=None)
        return _told(context, moved, tx.now_ms, WishStatus.DONE)
    words = f"{name} is {_SAID[schedule.state, event]}.{waits}"
    return WishOutcome(status=WishStatus.DONE, words=words, schedule=moved)


_SAID: dict[tuple[ScheduleState, ScheduleEvent], str] = {
    (ScheduleState.ARMED, ScheduleEvent.PAUSED): "paused",
    (ScheduleState.PAUSED, ScheduleEvent.RESUMED): "armed again",
    (ScheduleState.DISABLED, ScheduleEvent.RESUMED): "armed again",
    **{
        (state, ScheduleEvent.REMOVED): "removed"
        for state in ScheduleState
        if state is not ScheduleState.REMOVED
    },
}
"""What a person can do with a schedule in a state, and what is said then."""


def _tell_zone(
    tx: Transaction, context: VerbContext, session: Session, wisher: Wisher, zone: str
) -> WishOutcome:
    try:
        known: tzinfo = context.zone_named(zone)
    except LookupError:
        return _refused(f"I know no time zone {zone!r}. They are called like Europe/Vienna.")
    channel = session.route.channel
    tx.change("zone_set", channel=channel, person=wisher.person, zone=zone)
    now = time_words.moment(tx.now_ms, known)
    words = f"Your time zone is {zone}: it is {now}. What you order from now on means it."
    return WishOutcome(status=WishStatus.DONE, words=words)


def goal_entry(
    session: Session,
    goal_id: int,
    person: str,
    *,
    key: str,
    text: str,
    trigger: Trigger,
    now_ms: int,
) -> Entry:
    """A step of a goal as an entry of the inbox."""
    return Entry(
        entry_id=NOT_STORED,
        session_id=session.session_id,
        generation=session.generation,
        kind=EntryKind.GOAL,
        source=f"goal:{goal_id}",
        external_id=key,
        sender=person,
        body=Words(text=text, sent_ms=now_ms, trigger=trigger),
    )


def _begin_goal(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    wisher: Wisher,
    text: str,
    by: str,
    filing: Filing,
) -> WishOutcome:
    standing = goal_in(tx, session.session_id)
    if standing is not None:
        words = f"There is a goal already: {time_words.quoted(standing.text)}. /goal clear ends it."
        return _refused(words)
    refusal = why_no_goal(text, 0)
    if refusal is not None:
        return _refused(refusal)
    limits = context.goal_limits
    tx.insert(
        "goal_insert",
        session_id=session.session_id,
        generation=session.generation,
        person=wisher.person,
        text=text,
        steps_max=limits.steps_max,
        tokens_max=limits.tokens_max,
        created_by=by,
        now=tx.now_ms,
    )
    row = tx.row("goal_of_session", session_id=session.session_id)
    assert row is not None
    goal = goal_of(row)
    tx.change("goal_stepped", goal_id=goal.goal_id)
    note = time_words.goal_step(goal, "")
    trigger = Trigger(name=text, revision=goal.revision, note=note)
    key = f"{goal.revision}.1"
    entry = goal_entry(
        session, goal.goal_id, wisher.person, key=key, text=text, trigger=trigger, now_ms=tx.now_ms
    )
    filing.file_timed(tx, context, session, entry)
    tx.hints.update((GOALS, JOURNAL))
    words = f"{goal.shown}: I keep at it until it is done, at most {goal.steps_max} steps. /goal"
    return WishOutcome(status=WishStatus.DONE, words=f"{words} tells how it stands.")


def _move_goal(
    tx: Transaction, context: VerbContext, session: Session, wisher: Wisher, event: GoalEvent
) -> WishOutcome:
    goal = goal_in(tx, session.session_id)
    if goal is None:
        return _not_found("There is no goal here. /goal and what you want sets one.")
    refusal = why_not_their_goal(goal, wisher)
    if refusal is not None and event is not GoalEvent.PAUSED:
        return _refused(refusal)
    name = time_words.quoted(goal.text)
    match event:
        case GoalEvent.PAUSED if goal.state is not GoalState.PAUSED:
            pause_goal(tx, goal, GoalRule.BY_PERSON, "paused by the person", told=False)
            words = f"Paused: {name}. /goal resume goes on with it."
        case GoalEvent.RESUMED if goal.state is GoalState.PAUSED:
            limits = context.goal_limits
            tx.change(
                "goal_renewed",
                goal_id=goal.goal_id,
                steps_max=limits.steps_max,
                tokens_max=limits.tokens_max,
            )
            now = read_session(tx, session.session_id).generation
            rule = GoalRule.BY_PERSON
            move_goal(tx, goal, event, rule, goal.reason, generation=now, revised=True)
            words = f"I go on with {name}."
        case GoalEvent.REACHED:
            move_goal(tx, goal, event, GoalRule.BY_PERSON, "the person says so", revised=True)
            words = f"Done: {name}."
        case GoalEvent.CLEARED:
            move_goal(tx, goal, event, GoalRule.BY_PERSON, "cleared by the person", revised=True)
            words = f"Cleared: {name}."
        case _:
            return _refused(f"{name} is {goal.state}.")
    return WishOutcome(status=WishStatus.DONE, words=words)


def _add_criterion(tx: Transaction, session: Session, wisher: Wisher, text: str) -> WishOutcome:
    goal = goal_in(tx, session.session_id)
    if goal is None:
        return _not_found("There is no goal here. /goal and what you want sets one.")
    refusal = why_not_their_goal(goal, wisher) or why_no_goal(text, len(goal.criteria))
    if refusal is not None:
        return _refused(refusal)
    criteria = encoded([*goal.criteria, text])
    tx.change("goal_criteria", goal_id=goal.goal_id, criteria=criteria)
    tx.hints.update((GOALS, JOURNAL))
    words = f"Added: {time_words.quoted(goal.text)} is not reached before that is true, too."
    return WishOutcome(status=WishStatus.DONE, words=words)
