"""`koboshi update`: another version in the place of this one, or this one again."""

import shlex
from pathlib import Path

import click

from koboshi import __version__
from koboshi.cli.ask_owner import loaded
from koboshi.cli.options import (
    FAILED,
    CommandFailure,
    failures_told,
    home_options,
    json_option,
    show_json,
)
from koboshi.cli.update.foreign import what_to_do
from koboshi.cli.update.installation import own_installation
from koboshi.cli.update.updating import UpdateSteps, installed
from koboshi.config.problems import escaped
from koboshi.domain.errors import KoboshiError

_FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("version", required=False, default="")
@click.option(
    "--into", type=_FOLDER, metavar="DIR", help="Make an installation that updates itself in DIR."
)
@click.option("--rehearse", "copy", type=_FOLDER, hidden=True)
@home_options
@json_option
def update(
    version: str,
    into: Path | None,
    copy: Path | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Bring koboshi to VERSION (or the newest; a wheel's file will do), and go back by itself if
    that does not start.

    The version is built beside this one and checked on a copy of the database. Then the gateway
    starts again with it. Until it is ready it receives and sends nothing; if it is not ready after
    three starts, the version before serves again, on the database as it was. A kill at any
    moment leaves one that serves; repeat the command to go on.
    """
    with failures_told(as_json):
        if copy is not None:
            _rehearse(copy, home, config_file)
            return

        def tell(words: str) -> None:
            if not as_json:
                click.echo(escaped(words))

        if into is not None:
            ours = installed(into.absolute(), version or __version__, tell)
            if as_json:
                show_json({"ok": True, "version": ours.current, "program": str(ours.launcher)})
            else:
                tell(f"{ours.current} is in {ours.root}; start it by {ours.launcher}")
                tell(f"as a service: {shlex.quote(str(ours.launcher))} service install")
            return
        found = own_installation()
        if found is None:
            raise CommandFailure(FAILED, "not-ours", what_to_do())
        config = loaded(home, config_file)
        now = UpdateSteps(ours=found, config=config, config_file=config_file, tell=tell).to(version)
        serves = found.current
        if as_json:
            show_json({"ok": True, "version": now, "serves": serves})
        elif serves == now:
            tell(f"{now} serves")


def _rehearse(copy: Path, home: Path | None, config_file: Path | None) -> None:
    """Asked by the version that serves: would this one work?"""
    import anyio

    from koboshi.app.serve import rehearse

    config = loaded(home, config_file)
    try:
        anyio.run(rehearse, config, copy)
    except (KoboshiError, OSError) as error:
        raise CommandFailure(FAILED, "rehearsal", str(error)) from error
