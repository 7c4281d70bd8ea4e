"""`koboshi service`: run the gateway under systemd or launchd."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from koboshi.cli.groups import NearGroup
from koboshi.cli.options import FAILED, Command, CommandFailure, failures_told, home_options
from koboshi.cli.service.files import UnitFileStanding, standing, write_whole
from koboshi.cli.service.plan import (
    LAUNCHD,
    SYSTEM_USER,
    SYSTEMD,
    ServicePlan,
    Steps,
    Wish,
    check_user,
    plan,
)

RUN_SECONDS = 150.0
"""Longer than the start of a service may take."""


@click.group(cls=NearGroup)
def service() -> None:
    """Run the gateway as a service: systemd (user and system), launchd."""


def _place_options(command: Command) -> Command:
    here = LAUNCHD if sys.platform == "darwin" else SYSTEMD
    kinds = click.Choice([SYSTEMD, LAUNCHD])
    for option in (
        click.option("--kind", type=kinds, default=here, show_default=True),
        click.option(
            "--run-as",
            default=SYSTEM_USER,
            show_default=True,
            metavar="USER",
            help="The user of a system service.",
        ),
        click.option(
            "--system/--user",
            "is_system",
            default=None,
            help="For the machine, or for you alone. The default: for the machine if you are root.",
        ),
    ):
        command = option(command)
    return home_options(command)


@service.command()
@_place_options
def show(**asked: Any) -> None:
    """Print the file that `install` would write."""
    with failures_told(as_json=False):
        planned = plan(_wish(**asked), os.environ)
        _tell(planned.notes)
        click.echo(planned.text, nl=False)


@service.command(short_help="Write the file, and start the service now and at boot.")
@_place_options
@click.option("--force", is_flag=True, help="Write over a file that was changed by hand.")
@click.option("--no-start", is_flag=True, help="Only write the file.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
def install(force: bool, no_start: bool, dry_run: bool, **asked: Any) -> None:
    """Write the file, and have the service started now and at every boot."""
    with failures_told(as_json=False):
        wish = _wish(**asked)
        check_user(wish)
        planned = plan(wish, os.environ)
        _tell(planned.notes)
        was = _standing(planned)
        if dry_run:
            _tell_plan(planned, was)
            return
        if was is UnitFileStanding.CHANGED and not force:
            words = f"{planned.file} was changed by hand; --force writes over it"
            raise CommandFailure(FAILED, "changed", words)
        if was is UnitFileStanding.SAME:
            click.echo(f"{planned.file} is as it should be")
        else:
            _write(planned)
        steps = planned.install if was is UnitFileStanding.NOTHING else planned.replace
        _follow((), steps) if no_start else _follow(steps, ())


@service.command()
@_place_options
@click.option("--force", is_flag=True, help="Remove a file that was changed by hand, too.")
def uninstall(force: bool, **asked: Any) -> None:
    """Stop the service and remove its file. The home stays as it is."""
    with failures_told(as_json=False):
        planned = plan(_wish(**asked), os.environ)
        was = _standing(planned)
        if was is UnitFileStanding.NOTHING:
            raise CommandFailure(FAILED, "not-found", f"there is no {planned.file}")
        if was is UnitFileStanding.CHANGED and not force:
            words = f"{planned.file} was changed by hand; --force removes it"
            raise CommandFailure(FAILED, "changed", words)
        _follow(planned.before_removal, ())
        try:
            planned.file.unlink()
        except OSError as error:
            raise _unwritable(planned.file, error) from error
        click.echo(f"removed {planned.file}")
        _follow(planned.after_removal, ())


def _wish(
    *, kind: str, is_system: bool | None, run_as: str, home: Path | None, config_file: Path | None
) -> Wish:
    return Wish(
        kind=kind,
        is_system=os.geteuid() == 0 if is_system is None else is_system,
        run_as=run_as,
        home=home,
        config_file=config_file,
    )


def _standing(planned: ServicePlan) -> UnitFileStanding:
    try:
        return standing(planned.file, planned.text)
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise CommandFailure(FAILED, "file", f"{planned.file} cannot be read: {said}") from error


def _write(planned: ServicePlan) -> None:
    try:
        write_whole(planned.file, planned.text)
    except OSError as error:
        raise _unwritable(planned.file, error) from error
    click.echo(f"wrote {planned.file}")


def _unwritable(file: Path, error: OSError) -> CommandFailure:
    said = (error.strerror or str(error)).lower()
    hint = "" if os.geteuid() == 0 else "; a system service needs root, --user does not"
    return CommandFailure(FAILED, "file", f"{file} cannot be written: {said}{hint}")


def _follow(steps: Steps, only_told: Steps) -> None:
    """Run the commands; where the program is not there, or one fails, say what is left to do."""
    for number, step in enumerate(steps):
        if shutil.which(step[0]) is None:
            only_told = steps[number:]
            break
        click.echo(f"$ {shlex.join(step)}")
        said = run_step(step)
        if said is not None:
            left = "".join(f"\n  {shlex.join(each)}" for each in steps[number:])
            words = f"`{shlex.join(step)}` failed: {said}\nwhat is left to do:{left}"
            raise CommandFailure(FAILED, "command", words)
    if only_told:
        click.echo("now run:")
        for step in only_told:
            click.echo(f"  {shlex.join(step)}")


def run_step(step: tuple[str, ...]) -> str | None:
    """None if it went well, else what it said."""
    try:
        done = subprocess.run(
            step,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=RUN_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"


def _tell(notes: tuple[str, ...]) -> None:
    for note in notes:
        click.echo(f"note: {note}", err=True)


def _tell_plan(planned: ServicePlan, was: UnitFileStanding) -> None:
    """What `install` would write and run."""
    words = {
        UnitFileStanding.SAME: "is as it should be",
        UnitFileStanding.CHANGED: "was changed by hand; --force would write over it",
    }
    click.echo(f"{planned.file} {words.get(was, 'would be written')}:")
    click.echo(planned.text, nl=False)
    steps = planned.install if was is UnitFileStanding.NOTHING else planned.replace
    for step in steps:
        click.echo(f"would run: {shlex.join(step)}")
