"""What many commands take, and how they end."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

OK = 0
STORAGE_FAILED = 74
RESTART = 75
WRONG_SETUP = 78

Command = TypeVar("Command", bound=Callable[..., Any])


def home_options(command: Command) -> Command:
    """`--home` and `--config`, as every command that needs a home takes them."""
    path = click.Path(path_type=Path)
    command = click.option("--config", "config_file", type=path, help="The configuration.")(command)
    return click.option("--home", type=path, help="The home; else KOBOSHI_HOME, else ~/.koboshi.")(
        command
    )


def leave(code: int, words: str) -> NoReturn:
    """End with a message for a person."""
    click.echo(f"koboshi: {words}", err=True)
    sys.exit(code)
