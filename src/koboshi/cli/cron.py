"""`koboshi cron` and `koboshi goals`: what is done at set times, and what the agent keeps at."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from koboshi.cli.ask_owner import ask_owner, loaded, read_answer
from koboshi.cli.groups import ListGroup
from koboshi.cli.options import (
    failures_told,
    home_options,
    json_option,
    place_words,
    show_json,
)
from koboshi.cli.tables import echo_table
from koboshi.config.problems import escaped
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
    RunScheduleNow,
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
from koboshi.domain.phrases import clock_words, excerpt

TEXT_CHARS_MAX = 400


@click.group(cls=ListGroup)
def cron() -> None:
    """What the agent does at set times: list, add, show, pause, resume, run, remove, runs."""


@cron.command("list")
@home_options
@json_option
def list_schedules(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """All schedules, newest first."""
    with failures_told(as_json):
        answer = ask_owner(loaded(home, config_file), ListSchedules())
        if as_json:
            show_json(answer)
            return
        rows = read_answer(answer, ScheduleList).schedules
        cells = [(row.schedule, row.state, _next(row), row.rule, row.name) for row in rows]
        lines = ["  ".join(each) for each in cells]
        echo_table(("", "state", "next", "when", "name"), cells, lines, "nothing is scheduled")


@cron.command(short_help="Order something in SESSION at set times.")
@click.argument("session")
@click.argument("words", nargs=-1, required=True)
@home_options
@json_option
def add(
    session: str, words: tuple[str, ...], home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Order something in SESSION, s1, as behind /cron add: every day at 7:00 send me the news."""
    _do(AddSchedule(what=session, text=" ".join(words)), home, config_file, as_json=as_json)


@cron.command()
@click.argument("schedule")
@home_options
@json_option
def show(schedule: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """SCHEDULE, c1: its next times, and what became of the last ones."""
    with failures_told(as_json):
        answer = ask_owner(loaded(home, config_file), ShowSchedule(what=schedule))
        row = read_answer(answer, ScheduleShown).schedule
        if as_json:
            show_json(answer)
            return
        for line in _shown(row, row.reason):
            click.echo(escaped(line))


@cron.command(short_help="What became of the due times of SCHEDULE.")
@click.argument("schedule")
@home_options
@json_option
def runs(schedule: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """What became of the due times of SCHEDULE, c1, newest first, and why."""
    with failures_told(as_json):
        answer = ask_owner(loaded(home, config_file), ShowSchedule(what=schedule))
        row = read_answer(answer, ScheduleShown).schedule
        if as_json:
            show_json(answer)
            return
        for each in row.occasions:
            click.echo(escaped(_occasion(each)))


@click.group(cls=ListGroup)
def goals() -> None:
    """What the agent works on until it is done: list, pause, resume, done, clear."""


@goals.command("list")
@home_options
@json_option
def list_goals(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """All goals, newest first."""
    with failures_told(as_json):
        answer = ask_owner(loaded(home, config_file), ListGoals())
        if as_json:
            show_json(answer)
            return
        rows = read_answer(answer, GoalList).goals
        cells = [_goal_cells(row) for row in rows]
        lines = ["  ".join(each) for each in cells]
        echo_table(("", "state", "step", "goal", "last verdict"), cells, lines, "there is no goal")


def _command(group: click.Group, name: str, kind: type[MoveTimed], words: str, what: str) -> None:
    """Add the command of this name, which does one thing to one schedule or goal."""

    @group.command(name, help=words)
    @click.argument(what)
    @home_options
    @json_option
    def command(home: Path | None, config_file: Path | None, as_json: bool, **named: str) -> None:
        _do(kind(what=named[what]), home, config_file, as_json=as_json)


_command(cron, "pause", PauseSchedule, "Pause SCHEDULE, c1.", "schedule")
_command(cron, "resume", ResumeSchedule, "Resume SCHEDULE, c1.", "schedule")
_command(cron, "run", RunScheduleNow, "Run SCHEDULE, c1, now.", "schedule")
_command(cron, "remove", RemoveSchedule, "Remove SCHEDULE, c1.", "schedule")
_command(goals, "pause", PauseGoal, "Pause GOAL, g1.", "goal")
_command(goals, "resume", ResumeGoal, "Continue GOAL, g1.", "goal")
_command(goals, "done", FinishGoal, "Mark GOAL, g1, as reached.", "goal")
_command(goals, "clear", ClearGoal, "Clear GOAL, g1: the agent stops working on it.", "goal")


def _do(
    request: ControlRequest, home: Path | None, config_file: Path | None, *, as_json: bool
) -> None:
    with failures_told(as_json):
        answer = ask_owner(loaded(home, config_file), request)
        done = read_answer(answer, TimedDone)
        if as_json:
            show_json(answer)
            return
        click.echo(escaped(done.words))


def render_timed(answer: Mapping[str, object]) -> Iterator[str]:
    """What `explain` says of a schedule or a goal."""
    if answer.get("kind") == "schedule":
        told = read_answer(answer, ScheduleExplained)
        yield from _shown(told.schedule, told.words)
        return
    found = read_answer(answer, GoalExplained)
    row = found.goal
    yield f"goal {row.goal} of {row.person} ({place_words(row.route)})"
    yield f"wants     «{excerpt(row.text, TEXT_CHARS_MAX)}»"
    yield from (f"reached   when {each}" for each in row.criteria)
    yield f"stands    {row.state}, step {row.step} of {row.steps_max}"
    yield f"why       {found.words}"
    if row.turn:
        yield f"judged    turn {row.turn} was judged last"


def _next(row: ScheduleRow) -> str:
    return clock_words(row.next_ms[0]) if row.next_ms else "-"


def _shown(row: ScheduleRow, why: str | None) -> Iterator[str]:
    yield f"schedule {row.schedule} of {row.person} ({place_words(row.route)})"
    yield f"name      {row.name}"
    yield f"does      «{excerpt(row.prompt or '$ ' + row.command, TEXT_CHARS_MAX)}»"
    yield f"when      {row.rule}"
    yield f"stands    {row.state}"
    if why:
        yield f"why       {why}"
    yield f"next      {', '.join(map(clock_words, row.next_ms)) or 'never'}"
    yield f"place     {row.place}"
    yield f"too late  {row.late}"
    yield f"overlap   {row.overlap}, if the last one still runs"
    if row.occasions:
        yield ""
        yield "what happened"
    for each in row.occasions[:10]:
        yield f"  {_occasion(each)}"


def _occasion(each: OccasionRow) -> str:
    times = f" ×{each.count}" if each.count > 1 else ""
    turn = f" {each.turn}" if each.turn else ""
    return f"{clock_words(each.due_ms)} {each.verdict}{times}{turn}: {each.words}"


def _goal_cells(row: GoalRow) -> tuple[str, ...]:
    step = f"{row.step} of {row.steps_max}"
    return row.goal, row.state, step, excerpt(row.text), excerpt(row.reason or "-", 120)
