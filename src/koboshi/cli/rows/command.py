"""`koboshi sessions`, `turns`, `inbox`, `outbox`: what is stored, and what operators decide."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

from koboshi.cli.ask_owner import look, read_answer
from koboshi.cli.groups import ListGroup
from koboshi.cli.options import (
    Command,
    counted,
    failures_told,
    home_options,
    json_option,
    show_json,
)
from koboshi.cli.rows.cells import (
    DELIVERIES,
    MESSAGES,
    SESSIONS,
    TURNS,
    delivery_cells,
    message_cells,
    session_cells,
    turn_cells,
)
from koboshi.cli.rows.row_text import (
    delivery_line,
    delivery_lines,
    message_line,
    message_lines,
    session_line,
    session_lines,
    turn_line,
    turn_lines,
)
from koboshi.cli.tables import echo_table
from koboshi.clock import SystemClock
from koboshi.config.problems import escaped
from koboshi.control.replies import (
    DeliveryList,
    DeliveryShown,
    MessageList,
    MessageShown,
    Released,
    SessionList,
    SessionShown,
    TurnList,
    TurnShown,
)
from koboshi.control.requests import (
    ControlRequest,
    DropDelivery,
    DropMessage,
    DropTurn,
    ListRows,
    ReleaseDelivery,
    ResumeTurn,
    RetryDelivery,
    RetryMessage,
    ShowRow,
)
from koboshi.control.rows import LIMIT, LIMIT_MAX


@click.group(cls=ListGroup)
def sessions() -> None:
    """Conversations, one for each chat or thread."""


@click.group(cls=ListGroup)
def turns() -> None:
    """Units of agent work, from what woke them to their answers."""


@click.group(cls=ListGroup)
def inbox() -> None:
    """What arrived: messages, commands, reports of processes, and what was ignored."""


@click.group(cls=ListGroup)
def outbox() -> None:
    """Deliveries: what people are to get, and what became of it."""


def page_options(command: Command) -> Command:
    """`--limit` and `--before`, as every list takes them."""
    many = click.IntRange(1, LIMIT_MAX)
    words = "Only what is older than this id: the last one of the page before."
    command = click.option("--before", default="", metavar="ID", help=words)(command)
    return click.option(
        "--limit", type=many, default=LIMIT, show_default=True, help="Show at most this many."
    )(command)


def open_option(words: str) -> Callable[[Command], Command]:
    return click.option("--open", "is_open", is_flag=True, help=words)


@sessions.command("list")
@page_options
@home_options
@json_option
def list_sessions(
    limit: int, before: str, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Conversations, the newest first."""
    with failures_told(as_json):
        answer = _page(home, config_file, "session", limit, before)
        if as_json:
            show_json(answer)
            return
        now_ms, said = SystemClock().now_ms(), read_answer(answer, SessionList)
        lines = [session_line(view, now_ms) for view in said.sessions]
        cells = [session_cells(view, now_ms) for view in said.sessions]
        echo_table(SESSIONS, cells, lines, "there are no sessions")
        _echo_next(said.next)


@sessions.command("show")
@click.argument("session")
@home_options
@json_option
def show_session(session: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """A session with its newest turns. SESSION is s1, as `list` shows it."""
    with failures_told(as_json):
        request = ShowRow(kind="session", what=session)
        answer = look(home, config_file, request).answer
        if as_json:
            show_json(answer)
            return
        said = read_answer(answer, SessionShown)
        _echo(session_lines(said.session, said.turns, SystemClock().now_ms()))


@turns.command("list")
@open_option("Only those that have not ended.")
@page_options
@home_options
@json_option
def list_turns(
    is_open: bool,
    limit: int,
    before: str,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Turns, the newest first."""
    with failures_told(as_json):
        answer = _page(home, config_file, "turn", limit, before, is_open=is_open)
        if as_json:
            show_json(answer)
            return
        now_ms, said = SystemClock().now_ms(), read_answer(answer, TurnList)
        lines = [turn_line(view, now_ms) for view in said.turns]
        cells = [turn_cells(view, now_ms) for view in said.turns]
        echo_table(TURNS, cells, lines, "there are no turns")
        _echo_next(said.next)


@turns.command("show")
@click.argument("turn")
@home_options
@json_option
def show_turn(turn: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """A turn with its messages, calls and deliveries. TURN is t1, as `list` shows it."""
    _ask_about_turn(ShowRow(kind="turn", what=turn), home, config_file, as_json)


@turns.command("resume", short_help="Continue a turn that was set aside or waits.")
@click.argument("turn")
@home_options
@json_option
def resume_turn(turn: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Continue a turn now that was set aside, waits for a yes, or waits to be tried again."""
    _ask_about_turn(ResumeTurn(what=turn), home, config_file, as_json)


@turns.command("drop", short_help="End a turn for good.")
@click.argument("turn")
@home_options
@json_option
def drop_turn(turn: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """End a turn for good that no worker holds; what waits behind it goes on."""
    _ask_about_turn(DropTurn(what=turn), home, config_file, as_json)


@inbox.command("list")
@open_option("Only what waits.")
@page_options
@home_options
@json_option
def list_messages(
    is_open: bool,
    limit: int,
    before: str,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """What arrived, the newest first."""
    with failures_told(as_json):
        answer = _page(home, config_file, "message", limit, before, is_open=is_open)
        if as_json:
            show_json(answer)
            return
        now_ms, said = SystemClock().now_ms(), read_answer(answer, MessageList)
        lines = [message_line(view, now_ms) for view in said.messages]
        cells = [message_cells(view, now_ms) for view in said.messages]
        echo_table(MESSAGES, cells, lines, "there are no messages")
        _echo_next(said.next)


@inbox.command("show")
@click.argument("message")
@home_options
@json_option
def show_message(message: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """What arrived. MESSAGE is m1, as `list` shows it."""
    _ask_about_message(ShowRow(kind="message", what=message), home, config_file, as_json)


@inbox.command("retry", short_help="Ask a message again, once.")
@click.argument("message")
@click.option("--anew", is_flag=True, help="Also what was answered, for another answer.")
@home_options
@json_option
def retry_message(
    message: str, anew: bool, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Ask again, once, what was dropped or whose turn ended without an answer."""
    _ask_about_message(RetryMessage(what=message, anew=anew), home, config_file, as_json)


@inbox.command("drop")
@click.argument("message")
@home_options
@json_option
def drop_message(message: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Do not take up a message that waits. Its sender is not told."""
    _ask_about_message(DropMessage(what=message), home, config_file, as_json)


@outbox.command("list")
@open_option("Only deliveries that are not settled.")
@page_options
@home_options
@json_option
def list_deliveries(
    is_open: bool,
    limit: int,
    before: str,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Deliveries, the newest first."""
    with failures_told(as_json):
        answer = _page(home, config_file, "delivery", limit, before, is_open=is_open)
        if as_json:
            show_json(answer)
            return
        now_ms, said = SystemClock().now_ms(), read_answer(answer, DeliveryList)
        lines = [delivery_line(view, now_ms) for view in said.deliveries]
        cells = [delivery_cells(view, now_ms) for view in said.deliveries]
        echo_table(DELIVERIES, cells, lines, "there are no deliveries")
        _echo_next(said.next)


@outbox.command("show")
@click.argument("delivery")
@home_options
@json_option
def show_delivery(
    delivery: str, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """One delivery. DELIVERY is d1, as `list` shows it."""
    _ask_about_delivery(ShowRow(kind="delivery", what=delivery), home, config_file, as_json)


@outbox.command("retry", short_help="Send a delivery again, or now.")
@click.argument("delivery")
@home_options
@json_option
def retry_delivery(
    delivery: str, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Send again what was refused or given up, or now what waits for its time."""
    _ask_about_delivery(RetryDelivery(what=delivery), home, config_file, as_json)


@outbox.command("release")
@click.argument("delivery", required=False, default="")
@click.option("--all", "is_all", is_flag=True, help="Everything that is held.")
@home_options
@json_option
def release_delivery(
    delivery: str, is_all: bool, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Send what is held, after a restore or by a setting. What may have arrived before says so."""
    if bool(delivery) is is_all:
        raise click.UsageError("name one delivery, as d1, or say --all")
    with failures_told(as_json):
        request = ReleaseDelivery(what=delivery)
        answer = look(home, config_file, request).answer
        if as_json:
            show_json(answer)
            return
        released = counted(read_answer(answer, Released).released, "delivery", "deliveries")
        click.echo(f"released {released}; a gateway that runs looks at them within a minute")


@outbox.command("drop")
@click.argument("delivery")
@home_options
@json_option
def drop_delivery(
    delivery: str, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Give a delivery up: it is not sent."""
    _ask_about_delivery(DropDelivery(what=delivery), home, config_file, as_json)


def _page(
    home: Path | None,
    config_file: Path | None,
    kind: str,
    limit: int,
    before: str,
    *,
    is_open: bool = False,
) -> Mapping[str, object]:
    request = ListRows(kind=kind, limit=limit, before=before, open=is_open)
    return look(home, config_file, request).answer


def _ask_about_turn(
    request: ControlRequest, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    with failures_told(as_json):
        answer = look(home, config_file, request).answer
        if as_json:
            show_json(answer)
            return
        said = read_answer(answer, TurnShown)
        now_ms = SystemClock().now_ms()
        _echo(turn_lines(said.turn, said.messages, said.calls, said.deliveries, now_ms))


def _ask_about_message(
    request: ControlRequest, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    with failures_told(as_json):
        answer = look(home, config_file, request).answer
        if as_json:
            show_json(answer)
            return
        _echo(message_lines(read_answer(answer, MessageShown).message, SystemClock().now_ms()))


def _ask_about_delivery(
    request: ControlRequest, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    with failures_told(as_json):
        answer = look(home, config_file, request).answer
        if as_json:
            show_json(answer)
            return
        _echo(delivery_lines(read_answer(answer, DeliveryShown).delivery, SystemClock().now_ms()))


def _echo(lines: Iterator[str]) -> None:
    for line in lines:
        click.echo(escaped(line))


def _echo_next(following: str | None) -> None:
    if following is not None:
        click.echo(f"there may be more: --before {following}")
