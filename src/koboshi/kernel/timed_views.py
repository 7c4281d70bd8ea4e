"""Schedules and goals as an operator is shown them."""

from koboshi.domain import time_words
from koboshi.domain.ids import GoalId, ScheduleId
from koboshi.domain.schedule import ScheduleState
from koboshi.domain.wish import next_times
from koboshi.kernel.context import VerbContext
from koboshi.kernel.rows import read_session
from koboshi.kernel.timed_rows import occasion_of, read_goal, read_schedule
from koboshi.kernel.transaction import Reading
from koboshi.ports.schedules import GoalView, ScheduleView


def schedule_view(
    tx: Reading, context: VerbContext, schedule_id: ScheduleId, occasions: int
) -> ScheduleView | None:
    schedule = read_schedule(tx, schedule_id)
    if schedule is None:
        return None
    session = read_session(tx, schedule.session_id)
    order = schedule.order
    times: tuple[int, ...] = ()
    if schedule.state is ScheduleState.ARMED and schedule.due_ms is not None:
        zone = context.zone_or_own(order.zone)
        later = next_times(order, zone, schedule.due_ms, schedule.created_ms)
        times = (schedule.due_ms, *later)[:3]
    rows = tx.rows("occasions_of", schedule_id=schedule_id, limit=occasions) if occasions else []
    return ScheduleView(
        schedule=schedule,
        route=session.route,
        occasions=tuple(map(occasion_of, rows)),
        times=times,
        rule=time_words.rule_of(schedule, context.zone_or_own(order.zone)),
    )


def goal_view(tx: Reading, goal_id: GoalId) -> GoalView | None:
    goal = read_goal(tx, goal_id)
    if goal is None:
        return None
    return GoalView(goal=goal, route=read_session(tx, goal.session_id).route)
