"""`koboshi top`: what the gateway is doing, as it goes on."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from koboshi.cli.ask_owner import look, read_answer
from koboshi.cli.options import counted, failures_told, home_options
from koboshi.cli.tables import tone_of
from koboshi.clock import SystemClock
from koboshi.config.problems import escaped
from koboshi.control.page_replies import MinuteList
from koboshi.control.replies import StatusReply, TurnList
from koboshi.control.requests import GetMinutes, GetStatus, ListRows
from koboshi.domain.durations import ago, duration
from koboshi.domain.phrases import excerpt
from koboshi.domain.standing import STANDS

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

_SHORT = {
    "queued": "in the queue",
    "held-back": "paused",
    "waiting": "waiting for people",
    "suspended": "set aside",
    "answered": "being delivered",
}
"""How turns stand, in fewer words than where one is explained."""
TURNS = 15
REQUEST_CHARS_MAX = 60
HOUR = 60


@click.command()
@home_options
@click.option(
    "--every",
    type=click.FloatRange(0.2, 60),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@click.option("--once", is_flag=True, help="Show it once and leave, as without a terminal.")
def top(home: Path | None, config_file: Path | None, every: float, once: bool) -> None:
    """A live view of turns, channels and rates. Ctrl-C leaves."""
    from rich.console import Console
    from rich.live import Live

    with failures_told(as_json=False):
        console = Console()
        if once or not console.is_terminal:
            console.print(_frame(home, config_file))
            return
        with Live(
            _frame(home, config_file), console=console, screen=True, auto_refresh=False
        ) as live:
            try:
                while True:
                    time.sleep(every)  # noqa: TID251  (a command in the foreground, with no event loop)
                    live.update(_frame(home, config_file), refresh=True)
            except KeyboardInterrupt:
                return


def _frame(home: Path | None, config_file: Path | None) -> "Group":
    from rich.console import Group
    from rich.text import Text

    status = read_answer(look(home, config_file, GetStatus()).answer, StatusReply)
    asked = ListRows(kind="turn", open=True, limit=TURNS)
    turns = read_answer(look(home, config_file, asked).answer, TurnList)
    minutes = read_answer(look(home, config_file, GetMinutes()).answer, MinuteList)
    now_ms = SystemClock().now_ms()
    head = Text(_headline(status, now_ms), style="bold" if status.is_running else "bold red")
    parts = (Text(_counts(status)), _channels(status, minutes, now_ms), Text(_rates(minutes)))
    return Group(head, *parts, _turns(turns, now_ms))


def _headline(status: StatusReply, now_ms: int) -> str:
    worker = status.worker
    if not status.is_running or worker is None:
        return "koboshi is not running"
    return f"koboshi {worker.version}, pid {worker.pid}, up {duration(now_ms - worker.started_ms)}"


def _counts(status: StatusReply) -> str:
    found = {each: status.stands.get(each, 0) for each in STANDS}
    open_now = [f"{count} {_SHORT.get(each, each)}" for each, count in found.items() if count]
    turns = ", ".join(open_now) or "none open"
    waiting, to_send = status.inbox_waiting, status.outbox_unsettled
    rest = f"{counted(waiting, 'message')} waiting, {counted(to_send, 'delivery', 'deliveries')}"
    return f"turns: {turns}\n{rest} to send"


def _channels(status: StatusReply, minutes: MinuteList, now_ms: int) -> "Group":
    from rich.console import Group
    from rich.text import Text

    heard = dict(minutes.channels)
    good = [
        Text(f"✓ {escaped(name)}: last heard {ago(at_ms, now_ms)}")
        for name, at_ms in heard.items()
        if name not in status.unreached
    ]
    bad = [
        Text(f"✗ {escaped(name)}: {escaped(why)}", style="red")
        for name, why in status.unreached.items()
    ]
    near = [
        Text(
            f"{'✓' if each.ok else '✗'} {escaped(each.name)}: {escaped(each.reason)}",
            style="" if each.ok else "red",
        )
        for each in status.neighbours
    ]
    return Group(*bad, *good, *near)


def _rates(told: MinuteList) -> str:
    hour = told.minutes[-HOUR:]
    slow = [each.latency_p95_ms for each in hour if each.latency_p95_ms is not None]
    slowest = f", slowest answers {max(slow) / 1000:.1f} s" if slow else ""
    messages, errors = sum(each.messages for each in hour), sum(each.errors for each in hour)
    return f"last hour: {counted(messages, 'message')}, {counted(errors, 'error')}{slowest}"


def _turns(told: TurnList, now_ms: int) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("turn", "state", "for", "chat", "request"):
        table.add_column(title)
    for turn in told.turns:
        cells = (
            f"t{turn.turn_id}",
            turn.stands,
            duration(now_ms - turn.opened_ms),
            f"{turn.route.channel} {turn.route.chat}",
            excerpt(turn.request, REQUEST_CHARS_MAX),
        )
        tones = ("", tone_of(turn.stands), "", "", "")
        styled = zip(cells, tones, strict=True)
        table.add_row(*(Text(escaped(cell), style=tone) for cell, tone in styled))
    return table
