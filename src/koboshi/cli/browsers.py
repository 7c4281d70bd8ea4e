"""`koboshi browsers`: which browsers are logged in, and logging them out."""

from collections.abc import Iterator
from pathlib import Path

import click

from koboshi.cli.ask_owner import ask_owner, loaded, read_answer
from koboshi.cli.groups import ListGroup
from koboshi.cli.listing import show_list
from koboshi.cli.options import (
    FAILED,
    CommandFailure,
    counted,
    failures_told,
    home_options,
    json_option,
    show_json,
)
from koboshi.control.browsers import ALL
from koboshi.control.replies import BrowserList, BrowserRevoked
from koboshi.control.requests import ListBrowsers, RevokeBrowser
from koboshi.domain.durations import ago, duration


@click.group(cls=ListGroup)
def browsers() -> None:
    """Browsers that were let in by a link of `koboshi open`."""


@browsers.command("list", short_help="Browsers that are logged in, the last used first.")
@home_options
@json_option
def list_browsers(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """The browsers that are let in now, the one that was used last first."""
    show_list(
        home,
        config_file,
        as_json=as_json,
        request=ListBrowsers(),
        shape=BrowserList,
        lines=_lines,
    )


@browsers.command()
@click.argument("browser", required=False)
@click.option("--all", "is_all", is_flag=True, help="Every browser.")
@home_options
@json_option
def revoke(
    browser: str | None, is_all: bool, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Log BROWSER out, as `list` names it: b1. It needs a new link from then on."""
    with failures_told(as_json):
        if (browser is None) is not is_all:
            words = "name one browser, as `koboshi browsers list` shows it, or give --all"
            raise CommandFailure(FAILED, "usage", words)
        request = RevokeBrowser(what=ALL if browser is None else browser)
        answer = ask_owner(loaded(home, config_file), request)
        if as_json:
            show_json(answer)
            return
        revoked = read_answer(answer, BrowserRevoked)
        click.echo(f"{counted(revoked.count, 'browser')} logged out")


def _lines(listed: BrowserList, now_ms: int) -> Iterator[str]:
    if not listed.browsers:
        yield "no browser is let in; `koboshi open` gives a link that lets one in"
    for each in listed.browsers:
        left = duration(max(0, each.expires_ms - now_ms))
        yield (
            f"{each.browser:<5} {each.label}: let in {ago(each.made_ms, now_ms)}, used "
            f"{ago(each.used_ms, now_ms)}, for {left} at most"
        )
