"""`koboshi open`: a way into the page for one browser."""

import os
import sys
import webbrowser
from pathlib import Path

import click

from koboshi.cli.ask_owner import ask_owner, loaded, read_answer
from koboshi.cli.options import failures_told, home_options, json_option, show_json
from koboshi.control.replies import LoginLink
from koboshi.control.requests import GetLogin


@click.command()
@click.option("--print", "only_print", is_flag=True, help="Only print the link.")
@home_options
@json_option
def open(only_print: bool, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """A link that lets one browser in, once, for a quarter of an hour; opened where that can be.

    Chat and dashboard are there. Any holder of the link can use it, so it is for you alone.
    """
    with failures_told(as_json):
        answer = ask_owner(loaded(home, config_file), GetLogin())
        if as_json:
            show_json(answer)
            return
        link = read_answer(answer, LoginLink).link
        click.echo(link)
        if not only_print and _has_desktop():
            webbrowser.open(link)


def _has_desktop() -> bool:
    """Whether there is a screen and a terminal; a browser within the terminal is not wanted."""
    has_screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return sys.stdout.isatty() and (has_screen or sys.platform == "darwin")
