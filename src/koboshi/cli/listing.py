"""The `list` commands: what the owner of a home answers, line by line or as it is."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import click

from koboshi.cli.ask_owner import ask_owner, loaded, read_answer
from koboshi.cli.options import failures_told, show_json
from koboshi.clock import SystemClock
from koboshi.config.problems import escaped
from koboshi.control.replies import Done
from koboshi.control.requests import ControlRequest

Listed = TypeVar("Listed", bound=Done)


def show_list(
    home: Path | None,
    config_file: Path | None,
    *,
    as_json: bool,
    request: ControlRequest,
    shape: type[Listed],
    lines: Callable[[Listed, int], Iterable[str]],
) -> None:
    """Ask, and show what is answered: `lines` makes lines of it and of the time now. Nothing that
    people wrote does anything to a terminal."""
    with failures_told(as_json):
        answer = ask_owner(loaded(home, config_file), request)
        if as_json:
            show_json(answer)
            return
        for line in lines(read_answer(answer, shape), SystemClock().now_ms()):
            click.echo(escaped(line))
