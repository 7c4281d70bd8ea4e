"""`koboshi people`: who uses the gateway, as what, and whose words are erased."""

import sys
from pathlib import Path

import click

from koboshi.cli.ask_owner import ask_owner, loaded, read_answer
from koboshi.cli.groups import ListGroup
from koboshi.cli.options import (
    FAILED,
    CommandFailure,
    counted,
    failures_told,
    home_options,
    json_option,
    show_json,
)
from koboshi.cli.pairing import list_people
from koboshi.config.problems import escaped
from koboshi.control.people_replies import (
    PersonErased,
    RoleSet,
)
from koboshi.control.requests import ErasePerson, SetRole
from koboshi.domain.role import Role


@click.group(cls=ListGroup)
def people() -> None:
    """People who were let in by a code: their roles, and their words."""


people.add_command(list_people, "list")


@people.command("role")
@click.argument("channel")
@click.argument("person")
@click.argument("role", type=click.Choice([each.value for each in Role]))
@home_options
@json_option
def set_role(
    channel: str,
    person: str,
    role: str,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Make PERSON an owner or a member. CHANNEL and PERSON as `list` shows them."""
    with failures_told(as_json):
        request = SetRole(what=channel, person=person, role=role)
        answer = ask_owner(loaded(home, config_file), request)
        given, who = read_answer(answer, RoleSet), escaped(f"{channel} {person}")
        if not given.was_paired and not given.is_named:
            words = f"{who} was not let in by a code; `koboshi people list` shows who was"
            raise CommandFailure(FAILED, "not-found", words)
        if as_json:
            show_json(answer)
            return
        if given.was_paired:
            click.echo(f"{who} is {role} from now on")
        if given.is_named:
            click.echo(f"{who} is in `allow` of the configuration, and so an owner")


@people.command(short_help="Erase everything that PERSON said on CHANNEL.")
@click.argument("channel")
@click.argument("person")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@home_options
@json_option
def erase(
    channel: str,
    person: str,
    yes: bool,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Erase everything that PERSON said on CHANNEL, with the answers and their files."""
    with failures_told(as_json):
        who = escaped(f"{channel} {person}")
        if not yes:
            if as_json or not sys.stdin.isatty():
                words = "this cannot be undone; say --yes where no terminal can be asked"
                raise CommandFailure(FAILED, "not-confirmed", words)
            click.confirm(f"erase everything that {who} said? This cannot be undone", abort=True)
        answer = ask_owner(loaded(home, config_file), ErasePerson(what=channel, person=person))
        erased = read_answer(answer, PersonErased)
        if as_json:
            show_json(answer)
            return
        click.echo(f"erased {counted(erased.messages, 'message')} of {who}, and what followed")
        if not erased.is_finished:
            click.echo("files, or the log of the database, are in use: the gateway goes on with it")
        for backup in erased.backups:
            click.echo(escaped(f"still holds the words: {backup}"))
