"""`koboshi pairing`: who has access, who asks for it, and taking it away."""

import sys
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
from koboshi.clock import SystemClock
from koboshi.config.problems import escaped
from koboshi.control.people_replies import (
    PairingList,
    PersonDenied,
    PersonLetIn,
    PersonRevoked,
)
from koboshi.control.requests import ApprovePairing, DenyPairing, ListPairings, RevokePairing
from koboshi.domain.durations import ago, duration
from koboshi.domain.role import Role


@click.group(cls=ListGroup)
def pairing() -> None:
    """People who may use the gateway without being in the configuration."""


@pairing.command("list")
@home_options
@json_option
def list_people(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """People who ask for access, and people who have it. Codes are not shown: you are told them."""
    show_list(
        home,
        config_file,
        as_json=as_json,
        request=ListPairings(),
        shape=PairingList,
        lines=_lines,
    )


@pairing.command()
@click.argument("code")
@click.option(
    "--role",
    type=click.Choice([each.value for each in Role]),
    help="An owner answers approvals and restarts; a member talks to the agent. Asked on a "
    "terminal; member otherwise.",
)
@home_options
@json_option
def approve(
    code: str, role: str | None, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Give access to the person who has CODE, and tell them."""
    with failures_told(as_json):
        config = loaded(home, config_file)
        if role is None and not as_json and sys.stdin.isatty():
            listed = read_answer(ask_owner(config, ListPairings()), PairingList)
            role = click.prompt(
                "role", type=click.Choice([each.value for each in Role]), default=_proposed(listed)
            )
        request = ApprovePairing(what=code, role=role or Role.MEMBER)
        answer = ask_owner(config, request)
        if as_json:
            show_json(answer)
            return
        person = read_answer(answer, PersonLetIn)
        who = _who(person.channel, person.person, person.name)
        click.echo(escaped(f"{who} may use this gateway now as {person.role}, and is told so"))


@pairing.command()
@click.argument("code")
@home_options
@json_option
def deny(code: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Forget CODE; the person who was given it gets no other for a day. They are not told."""
    with failures_told(as_json):
        request = DenyPairing(what=code)
        answer = ask_owner(loaded(home, config_file), request)
        if as_json:
            show_json(answer)
            return
        stranger = read_answer(answer, PersonDenied)
        who = _who(stranger.channel, stranger.person, stranger.name)
        left = duration(stranger.expires_ms - SystemClock().now_ms())
        click.echo(escaped(f"{who} is not let in, and gets no code for {left}"))


@pairing.command(short_help="Revoke the access of PERSON.")
@click.argument("channel")
@click.argument("person")
@home_options
@json_option
def revoke(
    channel: str, person: str, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Revoke the access of PERSON, named as `list` does: telegram:main 123456789."""
    with failures_told(as_json):
        request = RevokePairing(what=channel, person=person)
        answer = ask_owner(loaded(home, config_file), request)
        revoked, who = read_answer(answer, PersonRevoked), escaped(_who(channel, person, ""))
        if not revoked.was_paired and not revoked.is_still_allowed:
            raise CommandFailure(FAILED, "not-found", f"{who} was not let in; `list` shows who was")
        if as_json:
            show_json(answer)
            return
        if revoked.was_paired:
            turns = counted(revoked.turns_set_aside, "turn")
            click.echo(f"{who} may not use this gateway any more; {turns} set aside")
        if revoked.is_still_allowed:
            click.echo(f"{who} is allowed by the configuration: change it, and restart")


def _proposed(listed: PairingList) -> str:
    """An owner, while no channel on which a code is good has one. The code does not say whose it
    is before it is used."""
    asking = {str(each.channel) for each in listed.strangers if not each.is_silenced}
    return Role.OWNER if asking and asking <= set(listed.without_owner) else Role.MEMBER


def _lines(listed: PairingList, now_ms: int) -> Iterator[str]:
    """One line for each; the id first, because a name proves nothing."""
    if not listed.strangers and not listed.people:
        yield "no requests for access, and no people let in by a code"
    for stranger in listed.strangers:
        left = duration(stranger.expires_ms - now_ms)
        stands = f"gets no code for {left}"
        if not stranger.is_silenced:
            stands = f"asked {ago(stranger.offered_ms, now_ms)}, the code is good for {left}"
        yield f"asks     {_who(stranger.channel, stranger.person, stranger.name)}: {stands}"
    for person in listed.people:
        yield (
            f"{person.role:<8} {_who(person.channel, person.person, person.name)}: let in "
            f"{ago(person.paired_ms, now_ms)}"
        )


def _who(channel: str, person: str, name: str) -> str:
    called = f', who calls themselves "{name}"' if name else ""
    return f"{channel} {person}{called}"
