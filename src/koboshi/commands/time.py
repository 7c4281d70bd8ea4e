"""`/cron`, `/remind` and `/goal`: words and facts → what is wanted. Pure; no model is needed."""

from koboshi.domain import time_words
from koboshi.domain.command import Command, CommandName, Response, SessionFacts
from koboshi.domain.due import NotATime
from koboshi.domain.goal import GoalEvent
from koboshi.domain.ids import ScheduleId
from koboshi.domain.ordering import PLAIN, order_of, read_options
from koboshi.domain.schedule import ScheduleEvent
from koboshi.domain.when import When, is_understood, read_when
from koboshi.domain.wish import (
    AddCriterion,
    BeginGoal,
    MakeSchedule,
    MoveGoal,
    MoveSchedule,
    RunSchedule,
    TellZone,
    why_too_often,
)

CRON_HELP = (
    "/cron lists. /cron add every weekday at 7:00 send me the news – also `in 2 hours`, "
    "`tomorrow 9:00`, `cron 0 7 * * 1-5`. Words before the time: `fresh` (a context of its own), "
    "`quiet` (say nothing if there is nothing to tell), `run`, `ask` or `skip` (if it is too "
    "late), `queue` (wait for the time before), `command` (a shell command, for owners). "
    "/cron pause|resume|run|remove c1. /cron zone Europe/Vienna. "
    "Or tell me in plain words what you want and when."
)
_EVENTS = {
    "pause": ScheduleEvent.PAUSED,
    "resume": ScheduleEvent.RESUMED,
    "remove": ScheduleEvent.REMOVED,
}
_GOAL_EVENTS = {
    "pause": GoalEvent.PAUSED,
    "resume": GoalEvent.RESUMED,
    "done": GoalEvent.REACHED,
    "clear": GoalEvent.CLEARED,
}


def cron(command: Command, facts: SessionFacts) -> Response:
    """`/cron`: list, add, pause, resume, run, remove, zone."""
    verb, _, rest = command.argument.strip().partition(" ")
    match verb.casefold():
        case "" | "list":
            return Response(reply=_listed(facts))
        case "add":
            return _add(rest.strip(), facts)
        case "run" | "pause" | "resume" | "remove" as said:
            return _named(said, rest.strip())
        case "zone" if rest.strip():
            return Response(reply="", wish=TellZone(zone=rest.strip()))
        case "zone":
            name = facts.calendar.zone_name
            known = f"Your time zone is {name}." if name else "You have told me no time zone."
            return Response(reply=f"{known} /cron zone Europe/Vienna tells it.")
        case _:
            return Response(reply=CRON_HELP)


def _listed(facts: SessionFacts) -> str:
    lines = facts.calendar.lines()
    if not lines:
        return f"Nothing is scheduled here. {CRON_HELP}"
    return "\n".join(lines)


def _named(verb: str, name: str) -> Response:
    schedule_id = schedule_named(name)
    if schedule_id is None:
        return Response(reply=f"Say which: /cron {verb} c1. /cron lists them.")
    if verb == "run":
        return Response(reply="", wish=RunSchedule(schedule_id=schedule_id))
    return Response(reply="", wish=MoveSchedule(schedule_id=schedule_id, event=_EVENTS[verb]))


def schedule_named(text: str) -> ScheduleId | None:
    """The schedule that a name as people write it means: `c3`, or 3."""
    digits = text.strip().casefold().removeprefix("c")
    is_number = digits.isascii() and digits.isdigit() and 0 < len(digits) < 19
    return ScheduleId(int(digits)) if is_number else None


def _add(text: str, facts: SessionFacts) -> Response:
    options, rest = read_options(text)
    return _ordered(rest, facts, options)


def plain_order(command: Command) -> str | None:
    """What the model is asked, if `/cron add` names a time in words of the person's own."""
    verb, _, rest = command.argument.strip().partition(" ")
    if command.name is not CommandName.CRON or verb.casefold() != "add":
        return None
    options, words = read_options(rest)
    if not words or "command" in options or is_understood(words):
        return None
    return f"Make a schedule: {rest.strip()}"


def remind(command: Command, facts: SessionFacts) -> Response:
    """`/remind in 2 hours tea`: words that are told as they are, once or again."""
    return _ordered(command.argument, facts, {PLAIN})


def _ordered(text: str, facts: SessionFacts, options: set[str]) -> Response:
    try:
        when = read_when(text, facts.now_ms, facts.calendar.zone)
    except NotATime as error:
        return Response(reply=str(error))
    words = when.rest.removeprefix("to ").strip() if options <= {PLAIN} else when.rest
    if not words:
        return Response(reply="Say what, too: /remind in 2 hours tea.")
    order = order_of(when, words, facts.calendar.zone_name, options)
    refusal = why_too_often(order)
    if refusal is not None:
        return Response(reply=refusal)
    asks = _about_zone(when, facts)
    return Response(reply=asks, wish=MakeSchedule(order=order, asks_zone=bool(asks)))


def _about_zone(when: When, facts: SessionFacts) -> str:
    """A person who told no time zone is asked for it with their first order by the clock."""
    calendar = facts.calendar
    if not when.is_local or calendar.zone_name or calendar.is_zone_asked:
        return ""
    now = time_words.moment(facts.now_ms, facts.calendar.zone)
    return (
        f"I take it by my own clock, on which it is {now}. If yours differs, tell me once where "
        "you are: /cron zone Europe/Vienna, and order it again."
    )


def goal(command: Command, facts: SessionFacts) -> Response:
    """`/goal`: set one, tell how it stands, pause, resume, done, clear, add a criterion."""
    text = command.argument.strip()
    first, _, rest = text.partition(" ")
    if not text:
        if facts.goal is None:
            return Response(reply="There is no goal here. /goal and what you want sets one.")
        return Response(reply=time_words.goal_status(facts.goal, facts.now_ms))
    if not rest and first.casefold() in _GOAL_EVENTS:
        return Response(reply="", wish=MoveGoal(event=_GOAL_EVENTS[first.casefold()]))
    if text.casefold() == "add":
        return Response(reply="Say what must be true, too: /goal add coverage does not fall.")
    if first.casefold() == "add":
        return Response(reply="", wish=AddCriterion(text=rest.strip()))
    return Response(reply="", wish=BeginGoal(text=text))
