"""`koboshi processes`: background processes of all chats, the ended ones included."""

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from pathlib import Path

import click

from koboshi.cli.ask_owner import ask_owner, loaded, read_answer
from koboshi.cli.groups import ListGroup
from koboshi.cli.options import (
    FAILED,
    CommandFailure,
    counted,
    failures_told,
    home_options,
    json_option,
    moment,
    place_words,
    show_json,
)
from koboshi.cli.tables import echo_table
from koboshi.clock import SystemClock
from koboshi.config.problems import escaped
from koboshi.control.narrate import fate_of_message
from koboshi.control.replies import ProcessEnded, ProcessExplained, ProcessList, ProcessOutput
from koboshi.control.requests import EndProcess, Explain, ListProcesses, ReadProcessLog
from koboshi.domain.durations import ago, duration
from koboshi.domain.ids import parse_shown, shown
from koboshi.domain.phrases import excerpt
from koboshi.domain.process import Process, ProcessState, how_ended
from koboshi.domain.sandbox import Boundary
from koboshi.domain.watch import Watcher, WatcherKind, WatcherState
from koboshi.ports.views import ProcessView

COMMAND_CHARS_MAX = 60
_LOST = "it was lost before, and what was found of it is ended now; "
_TITLES = ("id", "state", "started", "inside", "command", "chat")


@click.group(cls=ListGroup)
def processes() -> None:
    """Background processes, of all chats and of any earlier boot."""


@processes.command("list")
@home_options
@json_option
def list_processes(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """The running ones, then the newest that have ended."""
    with failures_told(as_json):
        answer = ask_owner(loaded(home, config_file), ListProcesses())
        if as_json:
            show_json(answer)
            return
        now_ms = SystemClock().now_ms()
        views = read_answer(answer, ProcessList).processes
        lines = [_line(view, now_ms) for view in views]
        cells = [_cells(view, now_ms) for view in views]
        echo_table(_TITLES, cells, lines, "there are no background processes")


@processes.command("show")
@click.argument("process")
@home_options
@json_option
def show_process(process: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """One process: what watches it, and what was said about it. PROCESS is p1."""
    with failures_told(as_json):
        named = parse_shown(process)
        if named is None or named[0] != "process":
            words = f'there is no process "{escaped(process)}"; `list` shows them, as p1'
            raise CommandFailure(FAILED, "not-found", words)
        answer = ask_owner(loaded(home, config_file), Explain(what=process))
        if as_json:
            show_json(answer)
            return
        for line in render_process(answer, SystemClock().now_ms(), None):
            click.echo(escaped(line))


@processes.command()
@click.argument("process")
@home_options
@json_option
def log(process: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """What it has printed so far. PROCESS is p1, as `list` shows it."""
    with failures_told(as_json):
        request = ReadProcessLog(what=process)
        answer = ask_owner(loaded(home, config_file), request)
        if as_json:
            show_json(answer)
            return
        for line in read_answer(answer, ProcessOutput).output.splitlines():
            click.echo(escaped(line))


@processes.command()
@click.argument("process")
@home_options
@json_option
def kill(process: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """End it with everything it has started. No notice is sent."""
    with failures_told(as_json):
        request = EndProcess(what=process)
        answer = ask_owner(loaded(home, config_file), request)
        if as_json:
            show_json(answer)
            return
        killed = read_answer(answer, ProcessEnded)
        before = _LOST if killed.process.state is ProcessState.LOST else "it had ended already; "
        before = before if killed.was_ended else ""
        view = ProcessView(process=killed.process, route=killed.route, watchers=killed.watchers)
        click.echo(before + escaped(_line(view, SystemClock().now_ms())))


def _cells(view: ProcessView, now_ms: int) -> tuple[str, ...]:
    process, route = view.process, view.route
    code = "" if process.exit_code is None else f" {process.exit_code}"
    return (
        shown("process", process.process_id),
        f"{process.state}{code}",
        ago(process.started_ms, now_ms),
        process.boundary,
        excerpt(process.command, COMMAND_CHARS_MAX),
        f"{route.channel} {route.chat}",
    )


def render_process(answer: Mapping[str, object], now_ms: int, zone: tzinfo | None) -> Iterator[str]:
    """The story of a process, for `koboshi explain`."""
    said = read_answer(answer, ProcessExplained)
    process = said.process
    name = shown("process", process.process_id)
    yield f"process {name} of session s{process.session_id} ({place_words(said.route)})"
    yield f"runs      «{excerpt(process.command, 400)}» in {process.workdir}"
    yield f"started   {moment(process.started_ms, zone)}, by turn t{process.turn_id}"
    yield f"inside    {boundary_words(process.boundary)}"
    yield f"stands    {_standing(process, now_ms)}"
    if process.reason:
        yield f"why       {process.reason}"
    if process.exit_read_by:
        yield f"read      the agent saw how it ended, in call {process.exit_read_by}"
    elif process.is_end_asked:
        yield "told      nothing: its end was asked for"
    for watcher in said.watchers:
        yield f"watched   {_watch_words(watcher)}"
    if said.reports:
        yield ""
        yield "what was said about it"
    for entry in said.reports:
        fate = f"told in turn t{entry.turn_id}" if entry.turn_id else fate_of_message(entry)
        yield f"  m{entry.entry_id}  {moment(entry.received_ms, zone)}  {entry.text}"
        yield f"      {fate}"


def _line(view: ProcessView, now_ms: int) -> str:
    process = view.process
    words = excerpt(process.command, COMMAND_CHARS_MAX)
    name = shown("process", process.process_id)
    armed = [watcher for watcher in view.watchers if watcher.state is WatcherState.ARMED]
    watched = f"  [{', '.join(watcher.kind for watcher in armed)}]" if armed else ""
    place = place_words(view.route)
    around = "" if process.boundary is Boundary.NONE else f", inside {process.boundary}"
    return f"{name:<5} {_standing(process, now_ms)}  {words}  ({place}{around}){watched}"


def boundary_words(boundary: Boundary) -> str:
    return {
        Boundary.BUBBLEWRAP: "bubblewrap: namespaces of its own",
        Boundary.LANDLOCK: "Landlock: the kernel's rules for it and its children",
        Boundary.NONE: "nothing: it could do what the gateway's own user may",
    }[boundary]


def _standing(process: Process, now_ms: int) -> str:
    if process.ended_ms is None:
        ending = ", asked to end" if process.is_end_asked else ""
        return f"running for {duration(now_ms - process.started_ms)}{ending}"
    how = how_ended(process.state, process.exit_code)
    return f"{how} {ago(process.ended_ms, now_ms)}"


def _watch_words(watcher: Watcher) -> str:
    what = {
        WatcherKind.EXIT: "its end",
        WatcherKind.MATCH: f"its output for {' | '.join(watcher.patterns)}",
        WatcherKind.EVERY: f"every {watcher.argument} s",
    }[watcher.kind]
    return f"{what}: {watcher.state}, {counted(watcher.reports, 'report')}"
