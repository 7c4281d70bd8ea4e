"""`koboshi migrate`: the home of Hermes or OpenClaw moves in."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from koboshi.cli.ask_owner import loaded, owner_failures
from koboshi.cli.options import (
    FAILED,
    WRONG_USE,
    CommandFailure,
    counted,
    failures_told,
    home_options,
    json_option,
    moment,
    show_json,
)
from koboshi.config import Config, prepare_home
from koboshi.config.problems import escaped
from koboshi.domain.incoming import MovedIn, Newcomer

TIMES = 3


@click.command()
@click.argument("source", type=click.Choice(["hermes", "openclaw"]))
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Its home; else ~/.hermes or ~/.openclaw.",
)
@click.option("--apply", "applies", is_flag=True, help="Move it in; without it, only the plan.")
@click.option(
    "--owner",
    default="",
    metavar="CHANNEL:ID",
    help="Who is the first owner, such as telegram:123; at a terminal it is asked.",
)
@home_options
@json_option
def migrate(
    source: str,
    folder: Path | None,
    applies: bool,
    owner: str,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Move the home of Hermes or OpenClaw in: first the plan, with --apply the move.

    Tokens, people (as members), model, MCP servers, memory (the owner's), skills, schedules
    (paused) and the system prompt come along. Private conversations are copied for the tool
    `recall`, each for its person. Their gateway and ours must be stopped. Nothing of theirs is
    changed. Killed half-way, nothing or all has moved; a second time changes nothing.
    """
    import anyio

    from koboshi.app.moving_in.found import NotMovable
    from koboshi.app.moving_in.moving import READERS, move_in
    from koboshi.app.moving_in.rendering import plan_lines
    from koboshi.app.moving_in.staging import baggage_of

    with failures_told(as_json):
        config = loaded(home, config_file)
        usual, read = READERS[source]
        try:
            found = read((folder or Path(usual)).expanduser().absolute())
            first = _owner(found.people, owner, asks=applies and not as_json)
            found.name_owner(first)
            baggage = baggage_of(found, config)
        except NotMovable as error:
            raise CommandFailure(FAILED, "not-movable", str(error)) from error
        scopes = baggage.incoming.memory.scopes
        plan = list(plan_lines(found, config.home, baggage.config_name, scopes))
        if not as_json:
            _show_plan(plan, found.left)
        moved: MovedIn | None = None
        if applies:
            try:
                with owner_failures(config.home):
                    prepare_home(config.home)
                    moved = anyio.run(move_in, config, baggage)
            except NotMovable as error:
                raise CommandFailure(FAILED, "not-movable", str(error)) from error
        if as_json:
            show_json(_document(plan, found.left, moved))
        elif moved is None:
            click.echo("\nNothing was changed. --apply moves it in.")
        else:
            _show_moved(config, moved, baggage.config_name, has_owner=first is not None)


def _owner(people: list[Newcomer], asked: str, *, asks: bool) -> Newcomer | None:
    """The person who is to be the owner; None if none is named. Raises CommandFailure."""
    by_name = {f"{each.channel.partition(':')[0]}:{each.person}": each for each in people}
    if asked:
        if asked not in by_name:
            known = ", ".join(by_name) or "none"
            raise CommandFailure(WRONG_USE, "owner", f"{asked} is not among the people: {known}")
        return by_name[asked]
    if not asks or not by_name or not sys.stdin.isatty():
        return None
    for number, name in enumerate(by_name, 1):
        click.echo(escaped(f"{number}  {name}  {by_name[name].name}"))
    chosen = click.prompt(
        "Who owns this gateway? (0: no one yet)", type=click.IntRange(0, len(people))
    )
    return list(by_name.values())[chosen - 1] if chosen else None


def _show_plan(plan: Iterable[tuple[str, str]], left: Iterable[tuple[str, str]]) -> None:
    for what, where in plan:
        click.echo(escaped(f"moves  {what} -> {where}"))
    for what, why in left:
        click.echo(escaped(f"stays  {what}: {why}"))


def _show_moved(config: Config, moved: MovedIn, config_name: str, *, has_owner: bool) -> None:
    if not moved.is_new:
        changed = "the owner is named now" if moved.is_owned_now else "nothing was changed"
        click.echo(f"\nIt was moved in before; {changed}.")
    else:
        counts = counted(moved.people, "person", "people")
        click.echo(f"\nMoved in: {counts}, and the files above.")
    for name, times in moved.schedules:
        shown = ", ".join(moment(each, None) for each in times[:TIMES])
        click.echo(escaped(f"paused {name}; it would be due {shown}"))
    for whose, count in moved.remembered:
        click.echo(escaped(f"memory of {whose}: {counted(count, 'entry', 'entries')}"))
    for what, why in moved.not_remembered:
        click.echo(escaped(f"stays  {what}: {why}"))
    for name, why in moved.refused:
        click.echo(escaped(f"stays  schedule {name}: {why}"))
    if moved.schedules:
        click.echo("`koboshi cron resume c1` arms one again; `koboshi cron list` shows them.")
    if not moved.is_new:
        return
    if config_name != "koboshi.toml":
        click.echo(escaped(f"You have a koboshi.toml: merge {config.home / config_name} into it."))
    if not has_owner and moved.people:
        click.echo("No one owns it yet: `koboshi people role CHANNEL PERSON owner`.")
    click.echo("Then `koboshi config check`, `koboshi doctor --online`, `koboshi run`.")


def _document(
    plan: list[tuple[str, str]], left: list[tuple[str, str]], moved: MovedIn | None
) -> dict[str, object]:
    done: dict[str, object] | None = None
    if moved is not None:
        done = {
            "is_new": moved.is_new,
            "is_owned_now": moved.is_owned_now,
            "people": moved.people,
            "schedules": [{"name": name, "next_ms": times} for name, times in moved.schedules],
            "refused": [{"name": name, "why": why} for name, why in moved.refused],
            "remembered": [{"whose": who, "entries": count} for who, count in moved.remembered],
            "not_remembered": [{"what": it, "why": why} for it, why in moved.not_remembered],
        }
    return {
        "ok": True,
        "moves": [{"what": what, "where": where} for what, where in plan],
        "stays": [{"what": what, "why": why} for what, why in left],
        "moved": done,
    }
