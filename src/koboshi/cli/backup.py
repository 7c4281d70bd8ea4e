"""`koboshi backup` and `koboshi restore`: whole copies of what is stored, and the way back."""

import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from koboshi.cli.ask_owner import (
    OWN_SECONDS,
    ask_gateway,
    loaded,
    owner_failures,
    read_answer,
    refusal_of,
)
from koboshi.cli.backup_words import made_lines, restored_lines
from koboshi.cli.groups import ListGroup
from koboshi.cli.options import (
    FAILED,
    CommandFailure,
    failures_told,
    home_options,
    json_option,
    moment,
    show_json,
)
from koboshi.cli.progress_bar import Show, bar
from koboshi.cli.tables import echo_table
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.config.problems import escaped
from koboshi.control.requests import CreateBackup, GetBackup

if TYPE_CHECKING:
    from koboshi.ports.backups import BackupStanding

LOOK_SECONDS = 0.1
KEPT = 14
_FILE = click.Path(path_type=Path)


@click.group(cls=ListGroup)
def backup() -> None:
    """Whole copies of the database, made while the gateway runs."""


@backup.command()
@click.option("--to", type=_FILE, help="The file to make; else one in <home>/backups.")
@click.option(
    "--keep",
    type=click.IntRange(0, 10_000),
    default=KEPT,
    show_default=True,
    help="How many are kept in <home>/backups; 0 = all.",
)
@home_options
@json_option
def create(
    to: Path | None, keep: int, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Make a backup and check it. It counts only if it is whole; else nothing is left of it."""
    with failures_told(as_json):
        config = loaded(home, config_file)
        file = "" if to is None else str(to.absolute())
        with bar(not as_json) as show:
            made = backup_made(config, file, keep, show)
        if made.state != "made":
            raise CommandFailure(FAILED, "failed", escaped(made.trouble))
        if as_json:
            show_json(_document(made))
            return
        for line in made_lines(made):
            click.echo(escaped(line))


@backup.command("verify", short_help="Read all of FILE: is it a whole backup of ours?")
@click.argument("file", type=_FILE)
@json_option
def verify(file: Path, as_json: bool) -> None:
    """Read all of FILE: is it a whole backup of ours? Nothing is changed."""
    from koboshi.app.backups import proven

    with failures_told(as_json), bar(not as_json) as show, owner_failures(file):
        version, size, rows = proven(file, lambda: show("checking", 0, 0))
    if as_json:
        whole = {"ok": True, "file": str(file), "schema": version, "bytes": size, "rows": rows}
        show_json(whole)
        return
    held = ", ".join(f"{count} {name}" for name, count in rows.items())
    click.echo(escaped(f"{file} is whole: schema {version}, {size} bytes; {held}"))


@backup.command("list")
@home_options
@json_option
def list_backups(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """What is in <home>/backups, newest first. `verify` says whether one is whole."""
    from koboshi.app.backups import backups_in

    with failures_told(as_json):
        found = backups_in(loaded(home, config_file).home)
        if as_json:
            listed = [{"file": b.file, "bytes": b.bytes, "made_ms": b.made_ms} for b in found]
            show_json({"ok": True, "backups": listed})
            return
        cells = [(moment(b.made_ms, None), str(b.bytes), b.file) for b in found]
        lines = [f"{when}  {size:>12}  {file}" for when, size, file in cells]
        nothing = "there are no backups; `koboshi backup create` makes one"
        echo_table(("made", "bytes", "file"), cells, lines, nothing)


@click.command()
@click.argument("file", type=_FILE)
@click.option(
    "--accept-data-loss", "accepts_loss", is_flag=True, help="Also to a server that does not flush."
)
@home_options
@json_option
def restore(
    file: Path, accepts_loss: bool, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Put the backup FILE in the place of the database. The gateway must be stopped.

    The database that is there now is kept in <home>/quarantine. On PostgreSQL, store.url must name
    an empty database, and the old one stays as it is. Deliveries of the backup that were not sent
    yet are held, because they may have arrived since: `koboshi outbox release` sends them.
    """
    import anyio

    from koboshi.app.backups import restored
    from koboshi.config.home_paths import check_home

    with failures_told(as_json):
        config = loaded(home, config_file)
        with bar(not as_json) as show, owner_failures(config.home):
            check_home(config.home)
            restoring = partial(
                restored,
                config,
                file,
                accepts_loss=accepts_loss,
                tick=lambda: show("checking", 0, 0),
            )
            done = anyio.run(restoring)
        if as_json:
            told = {"kept": done.kept, "held": done.held, "open_turns": done.open_turns}
            show_json({"ok": True, "file": str(file), **told, "rows": done.rows})
            return
        for line in restored_lines(file, done.kept, done.held, sum(done.open_turns.values())):
            click.echo(escaped(line))


def backup_made(config: Config, file: str, keep: int, show: Show) -> "BackupStanding":
    """Have the gateway make it, or make it ourselves where none runs. A holder of the home
    that does not answer is another command, or a gateway that will serve its socket soon."""
    from koboshi.domain.errors import HomeHeld

    request = CreateBackup(what=file, keep=keep)
    clock, never = SystemClock(), threading.Event()
    deadline = clock.monotonic() + OWN_SECONDS
    while True:
        answer = ask_gateway(config.home, request)
        if answer is not None:
            return _followed(config, answer, show)
        try:
            return _made_here(config, file, keep, show)
        except HomeHeld as held:
            if clock.monotonic() >= deadline:
                raise CommandFailure(FAILED, "no-answer", escaped(str(held))) from held
        never.wait(LOOK_SECONDS)


def _followed(config: Config, answer: Mapping[str, object], show: Show) -> "BackupStanding":
    """Look at the one that the gateway makes until it has ended."""
    never = threading.Event()
    while True:
        standing = _standing(answer)
        _show(standing, show)
        if standing.state in ("made", "failed"):
            return standing
        never.wait(LOOK_SECONDS)
        following = ask_gateway(config.home, GetBackup())
        if following is None:
            words = "the gateway ended before the backup was made; nothing was left of it"
            raise CommandFailure(FAILED, "failed", words)
        answer = following


def _made_here(config: Config, file: str, keep: int, show: Show) -> "BackupStanding":
    """Raises HomeHeld where another process owns the home."""
    import anyio

    from koboshi.app.backups import backup_from_home
    from koboshi.domain.errors import HomeHeld

    if not config.store.url and not (config.home / "koboshi.db").exists():
        words = f"no gateway has run in {config.home} yet; there is nothing to copy"
        raise CommandFailure(FAILED, "no-home", words)
    with owner_failures(config.home, HomeHeld):
        return anyio.run(
            backup_from_home, config, file, keep, lambda standing: _show(standing, show)
        )


def _standing(answer: Mapping[str, object]) -> "BackupStanding":
    from koboshi.ports.backups import BackupStanding

    if answer.get("ok") is not True:
        raise refusal_of(answer)
    inner = answer.get("backup")
    return read_answer(inner if isinstance(inner, dict) else {}, BackupStanding)


def _show(standing: "BackupStanding", show: Show) -> None:
    show(standing.state, standing.pages_done, standing.pages)


def _document(made: "BackupStanding") -> dict[str, object]:
    return {
        "ok": True,
        "file": made.file,
        "bytes": made.bytes,
        "rows": dict(made.rows),
        "removed": list(made.removed),
    }
