"""Every sentence about schedules and goals: to a person, and to the model."""

from collections.abc import Sequence
from datetime import datetime, tzinfo

from koboshi.domain import phrases
from koboshi.domain.due import moment_of, seconds_of
from koboshi.domain.durations import duration
from koboshi.domain.goal import Goal, GoalState
from koboshi.domain.marks import MARK, unmarked
from koboshi.domain.phrases import excerpt, failure
from koboshi.domain.schedule import Schedule, ScheduleKind, ScheduleState, Trigger, WorkPlace
from koboshi.domain.transcript import Choice

RUN_NOW = "Run now"
SKIP = "Skip"
GO_ON = "Yes"
PAUSE = "Pause"


def yes_no(yes: str, no: str) -> tuple[Choice, Choice]:
    return Choice(choice_id="yes", label=yes), Choice(choice_id="no", label=no)


def moment(at_ms: int, zone: tzinfo) -> str:
    """A moment in the zone of the person."""
    local = datetime.fromtimestamp(at_ms / 1_000, tz=zone)
    return f"{local:%a} {local.day} {local:%b %H:%M} {local.tzname() or ''}".rstrip()


def clock(at_ms: int, now_ms: int, zone: tzinfo) -> str:
    """The time of day, with the day if it is another one than that of `now_ms`."""
    local, now = (datetime.fromtimestamp(each / 1_000, tz=zone) for each in (at_ms, now_ms))
    return f"{local:%H:%M}" if local.date() == now.date() else moment(at_ms, zone)


def quoted(name: str) -> str:
    return f"«{excerpt(name)}»"


def rule_of(schedule: Schedule, zone: tzinfo) -> str:
    """When it comes, in words."""
    order = schedule.order
    match order.kind:
        case ScheduleKind.EVERY:
            return f"every {duration(seconds_of(order.expression) * 1_000)}"
        case ScheduleKind.CRON:
            return f"cron {order.expression} ({order.zone or 'the time of this gateway'})"
        case ScheduleKind.AT if schedule.due_ms is not None:
            return f"once, {moment(schedule.due_ms, zone)}"
        case ScheduleKind.AT:
            return f"once, {moment(moment_of(order.expression, zone), zone)}"


def made(schedule: Schedule, times: Sequence[int], zone: tzinfo) -> str:
    """Said to the person when a schedule was made or changed."""
    following = moment(times[0], zone) if times else "never"
    name = schedule.shown
    return (
        f"{name} {quoted(schedule.order.name)}: {rule_of(schedule, zone)}. Next: {following}. "
        f"/cron remove {name} takes it away."
    )


def listed(schedule: Schedule, zone: tzinfo) -> str:
    """One line of a list."""
    order = schedule.order
    line = f"{schedule.shown} {quoted(order.name)}: {rule_of(schedule, zone)}"
    if schedule.state is not ScheduleState.ARMED:
        why = f" ({schedule.reason})" if schedule.reason else ""
        return f"{line}, {schedule.state}{why}"
    if schedule.due_ms is not None and order.kind is not ScheduleKind.AT:
        again = ", to be tried again" if schedule.again_of is not None else ", next"
        line += f"{again} {moment(schedule.due_ms, zone)}"
    return line


def ask_late(schedule: Schedule, due_ms: int, now_ms: int, zone: tzinfo) -> str:
    at, ago = clock(due_ms, now_ms, zone), duration(now_ms - due_ms)
    return f"{quoted(schedule.order.name)} was due at {at}, {ago} ago. Shall I still do it?"


def ask_taken_away(schedule: Schedule, due_ms: int, now_ms: int, zone: tzinfo) -> str:
    at = clock(due_ms, now_ms, zone)
    return f"{quoted(schedule.order.name)}, due at {at}, was stopped with the rest. Run it now?"


def goes_with_its_order(
    schedule: Schedule, due_ms: int, count: int, now_ms: int, zone: tzinfo
) -> str:
    """Said when an order is changed or removed while occasions of it wait."""
    more = f" ({count} times)" if count > 1 else ""
    at = clock(due_ms, now_ms, zone)
    return f"{quoted(schedule.order.name)}, due at {at}{more}, waited for its turn: it is not done."


def occasion_note(
    schedule: Schedule, due_ms: int, now_ms: int, zone: tzinfo, *, is_late: bool, others: int
) -> str:
    """Said to the model before the words of a schedule."""
    order = schedule.order
    name = unmarked(quoted(order.name))
    words = [
        f"{MARK} The schedule {schedule.shown} {name} woke you; no person is writing now. "
        f"Due {clock(due_ms, now_ms, zone)}, it is {moment(now_ms, zone)}."
    ]
    if is_late:
        words.append(f"That is {duration(now_ms - due_ms)} late.")
    if others:
        more = "a due time before it was" if others == 1 else f"{others} due times before it were"
        words.append(f"{more[0].upper()}{more[1:]} missed and not made up for.")
    if order.kind is ScheduleKind.AT:
        words.append(
            "It is a reminder: tell the person what follows, or do it if it asks for work."
        )
    if order.quiet:
        words.append("If there is nothing worth telling, call nothing_to_report.")
    return " ".join(words)


def reminder(text: str, trigger: Trigger, now_ms: int, zone: tzinfo) -> str:
    """A reminder as it is told, with how late it is if that is worth saying."""
    if not trigger.late_ms:
        return phrases.reminder(text)
    at, ago = clock(trigger.due_ms, now_ms, zone), duration(now_ms - trigger.due_ms)
    return f"Reminder, due {at}, {ago} ago: {text}"


def reminders_told(told: Sequence[tuple[str, str, str]]) -> str:
    """Said to the model before the words of a person: what the chat heard since, without it."""
    lines = "; ".join(f"{at} {unmarked(quoted(name))} ({number})" for number, name, at in told)
    return f"{MARK} Reminders that the person got since your last turn here: {lines}."


def missed(lines: Sequence[str]) -> str:
    """One line to a chat, however many were missed."""
    shown, more = "; ".join(lines[:5]), len(lines) - 5
    rest = f"; and {more} more" if more > 0 else ""
    return f"Not done, because I was away or late: {shown}{rest}. /cron lists what comes next."


def missed_line(schedule: Schedule, due_ms: int, count: int, now_ms: int, zone: tzinfo) -> str:
    at = clock(due_ms, now_ms, zone)
    times = f", {count} times" if count > 1 else ""
    return f"{quoted(schedule.order.name)} (due {at}{times})"


def already_run_line(schedule: Schedule, due_ms: int, now_ms: int, zone: tzinfo) -> str:
    at = clock(due_ms, now_ms, zone)
    return f"{quoted(schedule.order.name)} (due {at}: done before, when my clock was ahead)"


def paused_for_owners(schedule: Schedule, channel: str) -> str:
    return (
        f"I have paused {schedule.shown} {quoted(schedule.order.name)}: its person "
        f"({excerpt(schedule.person, 60)} on {channel}) may not use me any more."
    )


def no_thread(schedule: Schedule, why: str) -> str:
    return (
        f"{quoted(schedule.order.name)} ({schedule.shown}) has no thread of its own: {why}. "
        "It works in this conversation instead."
    )


def thread_after_all(schedule: Schedule) -> str:
    return f"{quoted(schedule.order.name)} ({schedule.shown}) works here from now on."


def works_again(schedule: Schedule, failures: int) -> str:
    times = "once" if failures == 1 else f"{failures} times"
    return f"{quoted(schedule.order.name)} works again; it had failed {times}."


def disabled(schedule: Schedule, failures: int) -> str:
    return (
        f"I have switched {schedule.shown} {quoted(schedule.order.name)} off: it failed {failures} "
        f"times in a row. /cron resume {schedule.shown} switches it on again."
    )


def skipped_by_words(name: str) -> str:
    return f"I have let {quoted(name)} go, because you wrote something else. /cron can run it."


def why_goal_paused(event: str, reason: str | None) -> str:
    what = "its turn failed" if event in ("erred", "gave-up") else "its turn was ended"
    return f"{what} ({excerpt(failure(reason), 200)})" if reason else what


def goal_paused(goal: Goal, reason: str) -> str:
    why = excerpt(reason, 300).rstrip(".")
    return f"I have paused the goal {quoted(goal.text)}: {why}. /goal resume goes on with it."


def goal_done(goal: Goal, reason: str) -> str:
    return f"The goal {quoted(goal.text)} is reached: {excerpt(reason, 300).rstrip('.')}."


def goal_blocked(goal: Goal, reason: str) -> str:
    why = excerpt(reason, 300).rstrip(".")
    return (
        f"I am stuck with the goal {quoted(goal.text)}: {why}. Shall I go on? You can also say how."
    )


def goal_idle(goal: Goal, now_ms: int) -> str:
    idle = duration(now_ms - goal.changed_ms)
    return f"I was away. Nothing was done for {quoted(goal.text)} for {idle}. Go on with it?"


def goal_step(goal: Goal, reason: str) -> str:
    """Said to the model before the words of a step."""
    step = f"step {goal.step + 1} of at most {goal.steps_max}"
    criteria = "".join(f"\n- {unmarked(each)}" for each in goal.criteria)
    listed_criteria = f" It is reached when all of this is true:{criteria}\n" if criteria else " "
    why = f"The last answer was judged: {unmarked(excerpt(reason, 500))}" if reason else ""
    return (
        f"{MARK} A standing goal of the person goes on by itself ({step}); no person is writing "
        f"now.{listed_criteria}{why}"
    ).strip()


def why_schedule(schedule: Schedule) -> str:
    """Why a schedule stands as it does, for a person who asks."""
    without = without_thread(schedule)
    return f"{_why(schedule)}; {without}" if without else _why(schedule)


def without_thread(schedule: Schedule) -> str | None:
    """Why it works in the conversation although it wants a thread; None if it does not."""
    if schedule.thread_why is None or schedule.order.place is not WorkPlace.THREAD:
        return None
    return f"it has no thread of its own ({schedule.thread_why})"


def _why(schedule: Schedule) -> str:
    why = f" ({schedule.reason})" if schedule.reason else ""
    match schedule.state:
        case ScheduleState.ARMED if schedule.again_of is not None:
            return "the model could not be reached, and the same due time is tried again"
        case ScheduleState.ARMED:
            return "it waits for its next time"
        case ScheduleState.PAUSED:
            return f"it is paused{why}, until /cron resume {schedule.shown}"
        case ScheduleState.SPENT:
            return "its only time has come"
        case ScheduleState.DISABLED:
            return f"it was switched off{why}; /cron resume {schedule.shown} switches it on"
        case ScheduleState.REMOVED:
            return "it was removed"


_WHY_GOAL = {
    GoalState.ACTIVE: "a turn works on it, or is about to",
    GoalState.JUDGING: "the last answer is being judged",
    GoalState.WAITING: "it waits, and wakes by itself",
    GoalState.PAUSED: "it goes on when a person says /goal resume",
    GoalState.DONE: "it is reached",
    GoalState.CLEARED: "it was let go",
}


def why_goal(goal: Goal) -> str:
    rule = f" (rule {goal.rule})" if goal.rule else ""
    reason = f": {goal.reason}" if goal.reason else ""
    return f"{_WHY_GOAL[goal.state]}{rule}{reason}"


def goal_status(goal: Goal, now_ms: int) -> str:
    """What `/goal` answers."""
    criteria = "".join(f"\n- {each}" for each in goal.criteria)
    lines = [
        f"{goal.shown} {quoted(goal.text)}: {goal.state}, step {goal.step} of {goal.steps_max}."
    ]
    if criteria:
        lines.append(f"Reached when:{criteria}")
    if goal.reason:
        lines.append(f"Last verdict: {excerpt(goal.reason, 300)}")
    if goal.state is GoalState.WAITING and goal.wait_until_ms is not None:
        lines.append(f"It goes on in {duration(goal.wait_until_ms - now_ms)}.")
    return "\n".join(lines)
