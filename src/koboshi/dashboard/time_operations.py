"""What the page asks and does of schedules and goals: a part of the table in `operations.py`."""

from koboshi.control.requests import (
    ClearGoal,
    FinishGoal,
    ListGoals,
    ListSchedules,
    PauseGoal,
    PauseSchedule,
    RemoveSchedule,
    ResumeGoal,
    ResumeSchedule,
    RunScheduleNow,
    ShowSchedule,
)
from koboshi.control.time_replies import GoalList, ScheduleList, ScheduleShown, TimedDone
from koboshi.dashboard.operation import Operation, done_at, listed_at, shown_at

TIME_OPERATIONS: tuple[Operation, ...] = (
    listed_at(
        "schedules",
        "listSchedules",
        "Schedules, with their next times and their last ones",
        ScheduleList,
        lambda _call: ListSchedules(),
    ),
    shown_at(
        "schedules/{what}",
        "showSchedule",
        "A schedule, `c1`, and what became of its due times",
        ScheduleShown,
        lambda call: ShowSchedule(what=call.what),
    ),
    listed_at("goals", "listGoals", "Standing goals", GoalList, lambda _call: ListGoals()),
    *(
        done_at(f"schedules/{{what}}/{word}", f"{word}Schedule", summary, TimedDone, kind)
        for word, summary, kind in (
            ("pause", "Pause a schedule, `c1`", PauseSchedule),
            ("resume", "Arm a schedule, `c1`, again", ResumeSchedule),
            ("run", "Run a schedule, `c1`, now", RunScheduleNow),
            ("remove", "Take a schedule, `c1`, away", RemoveSchedule),
        )
    ),
    *(
        done_at(f"goals/{{what}}/{word}", f"{name}Goal", summary, TimedDone, kind)
        for word, name, summary, kind in (
            ("pause", "pause", "Pause a goal, `g1`", PauseGoal),
            ("resume", "resume", "Go on with a goal, `g1`", ResumeGoal),
            ("done", "finish", "A goal, `g1`, is reached", FinishGoal),
            ("clear", "clear", "Let a goal, `g1`, go", ClearGoal),
        )
    ),
)
