"""`koboshi config`: is the configuration right, and what does it say?"""

from pathlib import Path

import click

from koboshi.cli.ask_owner import loaded
from koboshi.cli.groups import NearGroup
from koboshi.cli.options import failures_told, home_options, json_option, show_json
from koboshi.cli.tables import echo_table
from koboshi.config import Config, describe


@click.group(cls=NearGroup)
def config() -> None:
    """Check or show the configuration."""


@config.command()
@home_options
@json_option
def check(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Say what is wrong with the configuration, without starting anything.

    Ends with 0 if it can be used, else with 78. Warnings do not count.
    """
    with failures_told(as_json):
        found = loaded(home, config_file, needs_secrets=True)
        if as_json:
            show_json({"ok": True, "warnings": list(found.warnings)})
            return
        warn(found)
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
        warn(found)


def warn(found: Config) -> None:
    """Say on stderr what is allowed and yet unwise."""
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
