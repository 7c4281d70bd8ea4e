"""`koboshi move`: all that is stored, from the file in the home to PostgreSQL, or back."""

from pathlib import Path

import click

from koboshi.cli.ask_owner import loaded, owner_failures
from koboshi.cli.options import (
    WRONG_SETUP,
    CommandFailure,
    failures_told,
    home_options,
    json_option,
    show_json,
)
from koboshi.cli.progress_bar import bar
from koboshi.config import Config
from koboshi.config.problems import InvalidValue, escaped
from koboshi.config.rules import store_address

FILE = "file"


@click.command()
@click.option(
    "--to",
    "target",
    required=True,
    metavar="URL|file",
    help="postgresql://…, an empty database; or `file`, from store.url back to the home.",
)
@click.option(
    "--accept-data-loss",
    "accepts_loss",
    is_flag=True,
    help="Also to or from a server that does not flush.",
)
@home_options
@json_option
def move(
    target: str,
    accepts_loss: bool,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Move everything that is stored to another store. All gateways must be stopped.

    Rows are copied, counted and compared. At no moment two stores count. If the command is killed,
    repeat it: it goes on where it was. The configuration is not changed; the last lines say what to
    set.
    """
    from koboshi.app.moving import moved

    with failures_told(as_json):
        config = loaded(home, config_file)
        url = _target(config, target)
        with bar(not as_json) as show, owner_failures(config.home):
            done = moved(
                config,
                url,
                accepts_loss=accepts_loss,
                tell=lambda table, rows: show(f"copying {table}", rows, 0),
            )
        if as_json:
            show_json({"ok": True, "place": done.place, "rows": dict(done.rows)})
            return
        click.echo(escaped(f"moved     to {done.place}"))
        if done.rows:
            held = ", ".join(f"{count} {name}" for name, count in done.rows.items() if count)
            click.echo(escaped(f"compared  {held}"))
        click.echo("now       " + escaped(_next_step(url)))


def _target(config: Config, target: str) -> str:
    """The address that is meant; empty for the file. Raises CommandFailure."""
    if target == FILE:
        if not config.store.url:
            words = "store.url names no database to move from: the store is the file already"
            raise CommandFailure(WRONG_SETUP, "config", words)
        return ""
    if not target.startswith(("postgresql://", "postgres://")):
        words = f"--to wants postgresql://… or `{FILE}`, not {target}"
        raise CommandFailure(WRONG_SETUP, "config", escaped(words))
    try:
        store_address(target)
    except InvalidValue as error:
        raise CommandFailure(WRONG_SETUP, "config", f"the address {error}") from error
    if config.store.url not in ("", target):
        words = "store.url names another database: use pg_dump and pg_restore between two servers"
        raise CommandFailure(WRONG_SETUP, "config", words)
    return target


def _next_step(url: str) -> str:
    return f'set store.url = "{url}"' if url else "remove store.url from the configuration"
