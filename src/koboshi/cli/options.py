"""What many commands take, what they print, and how they end."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from koboshi.domain.route import Route

OK = 0
FAILED = 1
WRONG_USE = 2
STORAGE_FAILED = 74
RESTART = 75
WRONG_SETUP = 78

Command = TypeVar("Command", bound=Callable[..., Any])


class CommandFailure(Exception):
    """A command cannot do what it was asked to: the exit code, what kind of failure it is for
    programs, and words for people."""

    def __init__(self, code: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.kind = kind
        self.message = message


def home_options(command: Command) -> Command:
    """`--home` and `--config`, as every command that needs a home takes them."""
    path = click.Path(path_type=Path)
    command = click.option("--config", "config_file", type=path, help="The configuration.")(command)
    return click.option("--home", type=path, help="The home; else KOBOSHI_HOME, else ~/.koboshi.")(
        command
    )


def json_option(command: Command) -> Command:
    """`--json`, as every command that shows something takes it."""
    words = "Print one JSON document, for programs."
    return click.option("--json", "as_json", is_flag=True, help=words)(command)


@contextmanager
def failures_told(as_json: bool) -> Iterator[None]:
    """End the command with the code of a failure inside, told in the way it was asked for."""
    try:
        yield
    except CommandFailure as failure:
        if not as_json:
            leave(failure.code, failure.message)
        error = {"type": failure.kind, "message": failure.message}
        show_json({"ok": False, "error": error})
        sys.exit(failure.code)


def show_json(document: Mapping[str, object]) -> None:
    """Print the one document. ASCII only: a terminal obeys nothing that is in it."""
    click.echo(json.dumps(document, indent=2))


def leave(code: int, words: str) -> NoReturn:
    """End with a message for a person."""
    click.echo(f"koboshi: {words}", err=True)
    sys.exit(code)


def moment(at_ms: int, zone: tzinfo | None) -> str:
    """A time as people read it, in their own zone if none is given."""
    return datetime.fromtimestamp(at_ms / 1000, tz=zone).strftime("%Y-%m-%d %H:%M:%S")


def counted(number: int, noun: str, nouns: str = "") -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {nouns or f'{noun}s'}"


def place_words(route: Route) -> str:
    """Where a chat is."""
    thread = f", thread {route.thread}" if route.thread else ""
    return f"{route.channel}, chat {route.chat}{thread}"
