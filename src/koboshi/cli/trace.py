"""`koboshi trace`: the way of a message, from the platform through a turn back to the platform."""

from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path

import click

from koboshi.cli.ask_owner import look, read_answer
from koboshi.cli.options import failures_told, home_options, json_option, moment, show_json
from koboshi.cli.rows.row_text import call_line, delivery_line, message_line, turn_line
from koboshi.clock import SystemClock
from koboshi.config.problems import escaped
from koboshi.control.narrate import fate_of_message
from koboshi.control.requests import TraceMessage
from koboshi.ports.views import Trace


@click.command()
@click.argument("message")
@home_options
@json_option
def trace(message: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """The way of a message: its turn, calls and deliveries, with the platform's ids.

    MESSAGE is a platform's own id of it (of Telegram: chat/message, as 1234/56), or any id of ours:
    m1; of a turn t1, a delivery d1 or a process p1 the message that began its turn is meant, of a
    session s1 that of its newest turn, of a schedule c1 its newest occasion, of a goal g1 the turn
    that was judged last.
    """
    with failures_told(as_json):
        answer = look(home, config_file, TraceMessage(what=message)).answer
        if as_json:
            show_json(answer)
            return
        for line in render_trace(read_answer(answer, Trace), SystemClock().now_ms()):
            click.echo(escaped(line))


def render_trace(found: Trace, now_ms: int, zone: tzinfo | None = None) -> Iterator[str]:
    """The way in lines: each stage after the one that led to it."""
    message = found.message
    yield f"arrived   over {message.source} as {message.external_id}"
    yield f"  {message_line(message, now_ms)}"
    if found.turn is None:
        yield f"  {fate_of_message(message)}"
    else:
        yield "turn"
        yield f"  {turn_line(found.turn, now_ms)}"
    for line in found.lines:
        if line.words:
            yield f"    {moment(line.at_ms, zone)}  {line.words}"
    if found.calls:
        yield "calls"
    yield from (f"  {call_line(call)}" for call in found.calls)
    if found.deliveries:
        yield "said"
    yield from (f"  {delivery_line(delivery, now_ms)}" for delivery in found.deliveries)
