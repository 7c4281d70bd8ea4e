"""`koboshi config`: is the configuration right, and what does it say?"""

from collections.abc import Iterable
from pathlib import Path

import click

from koboshi.cli.ask_owner import loaded
from koboshi.cli.groups import NearGroup
from koboshi.cli.options import (
    WRONG_SETUP,
    CommandFailure,
    failures_told,
    home_options,
    json_option,
    show_json,
)
from koboshi.cli.tables import echo_table
from koboshi.config import Config, describe


@click.group(cls=NearGroup)
def config() -> None:
    """Check or show the configuration."""


@config.command(short_help="Say what a start would refuse, without starting.")
@home_options
@json_option
def check(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Say what a start would refuse, without starting anything: wrong keys, a model or an MCP
    server that cannot be used as it is, a home or a port that cannot be had.

    Ends with 0 if it can be used, else with 78. Warnings do not count.
    """
    with failures_told(as_json):
        found = loaded(home, config_file, needs_secrets=True)
        warnings = _judged(found)
        if as_json:
            show_json({"ok": True, "warnings": list(warnings)})
            return
        warn(warnings)
        click.echo("ok")


@config.command()
@home_options
@json_option
def show(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Show every key, its value and where that was set. Secrets are masked.

    A key is set in the file, or by a variable: KOBOSHI__LIMITS__CONTEXT_TOKENS_MAX=60000 is how
    much of a conversation the model is shown, in tokens; what is older is summed up.
    """
    with failures_told(as_json):
        found = loaded(home, config_file, needs_secrets=True)
        rows = describe(found)
        if as_json:
            keys = [{"key": key, "value": value, "source": source} for key, value, source in rows]
            show_json({"ok": True, "keys": keys, "warnings": list(found.warnings)})
            return
        lines = [
            f"{key} = {value} ({source})" if source else f"{key} = {value}"
            for key, value, source in rows
        ]
        echo_table(("key", "value", "set by"), rows, lines, nothing="")
        warn(found.warnings)


def _judged(found: Config) -> tuple[str, ...]:
    """The warnings of a start on the configuration. Raises CommandFailure if there would be no
    start."""
    from koboshi.app.start_check import verdict_on
    from koboshi.cli.holders import LOCK_NAME, lock_holders

    verdict = verdict_on(found, ours=frozenset(lock_holders(found.home / LOCK_NAME)))
    if verdict.refusals:
        raise CommandFailure(WRONG_SETUP, "config", "\n".join(verdict.refusals))
    return verdict.warnings


def warn(warnings: Iterable[str]) -> None:
    """Say on stderr what is allowed and yet unwise."""
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
