"""`koboshi run`: the gateway in the foreground, and the parent that starts it again."""

import faulthandler
import os
import signal
import sys
from pathlib import Path

import click

from koboshi.cli.options import RESTART, STORAGE_FAILED, WRONG_SETUP, home_options, leave
from koboshi.config import Config, ConfigError, load, prepare_home, secrets_of


@click.command()
@home_options
@click.option("--supervise", is_flag=True, help="Start it again whenever it dies.")
@click.option(
    "--lock-wait",
    type=float,
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for another gateway to leave the home.",
)
@click.option(
    "--accept-data-loss",
    "accepts_loss",
    is_flag=True,
    help="If the database is damaged and there is no backup: set it aside and start empty.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
def run(
    home: Path | None,
    config_file: Path | None,
    supervise: bool,
    lock_wait: float,
    accepts_loss: bool,
    log_level: str,
) -> None:
    """Run the gateway in the foreground until it is told to stop."""
    try:
        config = load(home, config_file, os.environ)
        prepare_home(config.home)
    except ConfigError as error:
        leave(WRONG_SETUP, str(error))
    if supervise:
        from koboshi.cli.supervise import supervise_gateway

        sys.exit(supervise_gateway(sys.argv[1:]))
    sys.exit(_serve(config, lock_wait, accepts_loss, log_level))


def _serve(config: Config, lock_wait: float, accepts_loss: bool, log_level: str) -> int:
    """Serve, and turn what ends it into an exit code."""
    import anyio

    from koboshi import logs
    from koboshi.app import RunOptions, serve
    from koboshi.domain.errors import HomeHeld, StoreFailed, StoreRefused, Unusable

    faulthandler.register(signal.SIGQUIT)
    wants_json = {"json": True, "text": False}.get(os.environ.get("KOBOSHI_LOG", ""))
    logs.configure(log_level, wants_json, secrets_of(config))
    options = RunOptions(
        lock_wait_seconds=lock_wait,
        accepts_loss=accepts_loss,
        announce=lambda address: click.echo(f"koboshi is at {address} (talk: koboshi chat)"),
    )
    code = 0
    try:
        anyio.run(serve, config, options, backend_options={"use_uvloop": True})
    except* HomeHeld as group:
        is_serviced = "INVOCATION_ID" in os.environ or "NOTIFY_SOCKET" in os.environ
        code = RESTART if is_serviced else WRONG_SETUP
        click.echo(f"koboshi: {first_of(group)}", err=True)
    except* (StoreRefused, Unusable) as group:
        code = WRONG_SETUP
        click.echo(f"koboshi: {first_of(group)}", err=True)
    except* StoreFailed as group:
        code = STORAGE_FAILED
        click.echo(f"koboshi: {first_of(group)}; start me again", err=True)
    return code


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error inside a group of groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
