"""What an operator sees and does of schedules and goals."""

from typing import TYPE_CHECKING
from uuid import uuid4

from koboshi.control.replies import Done, refusal
from koboshi.control.requests import (
    AddSchedule,
    ClearGoal,
    ControlRequest,
    FinishGoal,
    ListGoals,
    ListSchedules,
    MoveTimed,
    PauseGoal,
    PauseSchedule,
    RemoveSchedule,
    ResumeGoal,
    ResumeSchedule,
    ShowSchedule,
)
from koboshi.control.time_replies import (
    GoalExplained,
    GoalList,
    GoalRow,
    OccasionRow,
    ScheduleExplained,
    ScheduleList,
    ScheduleRow,
    ScheduleShown,
    TimedDone,
)
from koboshi.domain import time_words
from koboshi.domain.goal import GoalEvent
from koboshi.domain.ids import GoalId, ScheduleId, SessionId, parse_shown, shown
from koboshi.domain.occasion import rule_words
from koboshi.domain.schedule import Occasion, ScheduleEvent
from koboshi.domain.wish import MoveGoal, MoveSchedule, RunSchedule, WishOutcome, WishStatus
from koboshi.ports.schedules import GoalView, ScheduleView
from koboshi.ports.views import OwnerViews

if TYPE_CHECKING:
    from koboshi.ports.store import Store  # a look at a home does not load it

LISTED_MAX = 500
OCCASIONS_LISTED = 5
OCCASIONS_SHOWN = 100
_MOVES = {
    PauseSchedule: ScheduleEvent.PAUSED,
    ResumeSchedule: ScheduleEvent.RESUMED,
    RemoveSchedule: ScheduleEvent.REMOVED,
}
_GOAL_MOVES = {
    PauseGoal: GoalEvent.PAUSED,
    ResumeGoal: GoalEvent.RESUMED,
    FinishGoal: GoalEvent.REACHED,
    ClearGoal: GoalEvent.CLEARED,
}


async def answer(store: "Store", request: ControlRequest) -> Done:
    match request:
        case ListSchedules():
            return await listed(store)
        case ShowSchedule(what=what):
            return await show(store, what)
        case AddSchedule(what=what, text=text):
            return await add(store, what, text)
        case ListGoals():
            return await goals(store)
        case MoveTimed():
            return await move(store, request)
        case other:
            raise AssertionError(f"nothing answers {type(other).__name__}")


async def listed(store: "Store") -> ScheduleList:
    views = await store.schedules.views(limit=LISTED_MAX, occasions=OCCASIONS_LISTED)
    return ScheduleList(schedules=tuple(map(_row, views)))


async def show(store: "Store", what: str) -> Done:
    named = _named(what, "schedule")
    view = None
    if named is not None:
        view = await store.schedules.view(ScheduleId(named), occasions=OCCASIONS_SHOWN)
    return _no_schedule(what) if view is None else ScheduleShown(schedule=_row(view))


async def add(store: "Store", what: str, text: str) -> Done:
    named = _named(what, "session")
    if named is None or await store.views.session(SessionId(named)) is None:
        words = f'there is no session "{what}"; `koboshi sessions list` shows them, as s1'
        return refusal("not-found", words)
    outcome = await store.schedules.order(SessionId(named), text, _key())
    return _told(outcome)


async def move(store: "Store", request: MoveTimed) -> Done:
    goal_event = _GOAL_MOVES.get(type(request))
    if goal_event is not None:
        goal = _named(request.what, "goal")
        if goal is None:
            return refusal("not-found", f'there is no goal "{request.what}", as g1')
        return _told(await store.goals.move(GoalId(goal), MoveGoal(event=goal_event), _key()))
    named = _named(request.what, "schedule")
    view = None
    if named is not None:
        view = await store.schedules.view(ScheduleId(named), occasions=0)
    if view is None:
        return _no_schedule(request.what)
    schedule = view.schedule
    event = _MOVES.get(type(request))
    own = schedule.schedule_id
    wish = (
        RunSchedule(schedule_id=own)
        if event is None
        else MoveSchedule(schedule_id=own, event=event)
    )
    outcome = await store.schedules.wish(
        schedule.session_id, schedule.person, wish, _key(), is_operator=True
    )
    return _told(outcome)


async def explained(
    views: OwnerViews, kind: str, number: int, *, is_running: bool
) -> ScheduleExplained | GoalExplained | None:
    """Why a schedule or a goal stands where it does; None if there is no such one."""
    if kind == "goal":
        found = await views.goal(GoalId(number))
        if found is None:
            return None
        words = time_words.why_goal(found.goal)
        return GoalExplained(kind=kind, is_running=is_running, goal=_goal(found), words=words)
    view = await views.schedule(ScheduleId(number), OCCASIONS_SHOWN)
    if view is None:
        return None
    words = time_words.why_schedule(view.schedule)
    return ScheduleExplained(kind=kind, is_running=is_running, schedule=_row(view), words=words)


async def goals(store: "Store") -> GoalList:
    return GoalList(goals=tuple(map(_goal, await store.goals.views(limit=LISTED_MAX))))


def _key() -> str:
    return f"operator:{uuid4().hex}"


def _told(outcome: WishOutcome) -> Done:
    if outcome.status is WishStatus.NOT_FOUND:
        return refusal("not-found", outcome.words)
    if outcome.status is WishStatus.REFUSED:
        return refusal("refused", outcome.words)
    return TimedDone(words=outcome.words)


def _named(what: str, kind: str) -> int | None:
    found = parse_shown(what.strip())
    return found[1] if found is not None and found[0] == kind else None


def _no_schedule(what: str) -> Done:
    words = f'there is no schedule "{what}"; `koboshi cron list` shows them, as c1'
    return refusal("not-found", words)


def _row(view: ScheduleView) -> ScheduleRow:
    schedule, order = view.schedule, view.schedule.order
    return ScheduleRow(
        schedule=schedule.shown,
        name=order.name,
        rule=view.rule,
        kind=order.kind,
        expression=order.expression,
        zone=order.zone,
        prompt=order.prompt,
        command=order.command,
        place=order.place,
        late=order.late,
        overlap=order.overlap,
        quiet=order.quiet,
        state=schedule.state,
        reason=schedule.reason or time_words.without_thread(schedule),
        failures=schedule.failures,
        person=schedule.person,
        route=view.route,
        next_ms=view.times,
        occasions=tuple(map(_occasion, view.occasions)),
    )


def _occasion(occasion: Occasion) -> OccasionRow:
    turn_id = occasion.turn_id
    return OccasionRow(
        due_ms=occasion.due_ms,
        verdict=occasion.verdict,
        rule=occasion.rule,
        words=rule_words(occasion.rule),
        count=occasion.count,
        decided_ms=occasion.decided_ms,
        turn=None if turn_id is None else shown("turn", turn_id),
    )


def _goal(view: GoalView) -> GoalRow:
    goal = view.goal
    return GoalRow(
        goal=goal.shown,
        text=goal.text,
        criteria=goal.criteria,
        state=goal.state,
        reason=goal.reason,
        step=goal.step,
        steps_max=goal.steps_max,
        tokens=goal.tokens,
        tokens_max=goal.tokens_max,
        turn=None if goal.judged_turn is None else shown("turn", goal.judged_turn),
        wait_process=None if goal.wait_process is None else shown("process", goal.wait_process),
        wait_until_ms=goal.wait_until_ms,
        changed_ms=goal.changed_ms,
        person=goal.person,
        route=view.route,
    )
