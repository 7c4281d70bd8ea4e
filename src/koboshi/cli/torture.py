"""`koboshi torture`: throw-away gateways are killed again and again, and nothing may be lost."""

import math
import os
import random
import signal
import sys
import tempfile
from pathlib import Path

import anyio
import click
from anyio import CancelScope, create_task_group, open_signal_receiver

from koboshi.cli.fork_server import fork_server_command
from koboshi.cli.options import (
    FAILED,
    OK,
    WRONG_SETUP,
    CommandFailure,
    failures_told,
    json_option,
    show_json,
)
from koboshi.cli.torture_show import CampaignBar, tally_lines
from koboshi.clock import SystemClock
from koboshi.config.home_paths import find_places
from koboshi.torture import Aim, Campaign, CampaignSettings, Report, clear, homes_here

LIVES = 60
LIVES_MAX = 1_000_000
MINUTES_MAX = 7 * 24 * 60
SEED_MAX = 2**63 - 1
HOMES_MAX = 16


def _a_number(
    _context: click.Context, _parameter: click.Parameter, value: float | None
) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not in the range of minutes")
    return value


@click.command()
@click.option(
    "--lives",
    type=click.IntRange(1, LIVES_MAX),
    metavar="N",
    help=f"How many gateways are started and killed.  [default: {LIVES}, or as many as there is "
    "time for]",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0, MINUTES_MAX, min_open=True),
    callback=_a_number,
    metavar="M",
    help="Stop killing after so many minutes.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_MAX),
    metavar="S",
    help="Repeat the kills and messages of an earlier run.  [default: a new one]",
)
@click.option(
    "--at",
    "aim",
    type=click.Choice([each.value for each in Aim]),
    default=Aim.BOTH.value,
    show_default=True,
    help="Kill at random instants, before and after the steps that are stored, or both.",
)
@click.option(
    "--homes",
    type=click.IntRange(1, HOMES_MAX),
    metavar="N",
    help="How many gateways live side by side.  [default: 2, or 1 on one core]",
)
@click.option(
    "--home",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the throw-away homes are made: a new or empty folder.  [default: a temporary one]",
)
@click.option(
    "--few-files",
    "has_few_files",
    is_flag=True,
    help="Let some of the gateways open only few files, or too few to start.",
)
@click.option("--keep", is_flag=True, help="Keep the homes, also when nothing is wrong.")
@json_option
def torture(
    lives: int | None,
    minutes: float | None,
    seed: int | None,
    aim: str,
    homes: int | None,
    folder: Path | None,
    has_few_files: bool,
    keep: bool,
    as_json: bool,
) -> None:
    """Kill a throw-away gateway again and again while people talk to it, and print the tally.

    The gateway is a real one, with the offline model, in a home of its own. People send it
    messages, commands, background jobs and answers to its questions over HTTP, others write to its
    bot on a small platform in Telegram's form that fails now and then, and it is killed with
    SIGKILL at random instants and before and after every step that it stores. Some of its lives
    have a clock that is wrong and jumps, and the model is busy for a while now and then. When it
    has come to rest, everything must be there: each message answered or its end told, once, in
    order and in its place, no command run twice, each job reported once, the database whole.

    Your own home and configuration are not looked at. Ends with 0 if all is well, and with 1 if
    not: then the homes are kept, to be looked at.
    """
    with failures_told(as_json):
        place = _folder_for(folder)
    settings = CampaignSettings(
        seed=random.SystemRandom().randrange(2**32) if seed is None else seed,
        folder=place,
        fork_server=fork_server_command(),
        now_ms=SystemClock().now_ms,
        lives=LIVES if lives is None and minutes is None else lives,
        minutes=minutes,
        aim=Aim(aim),
        homes=homes or homes_here(),
        has_few_files=has_few_files,
    )
    campaign = Campaign(settings)
    shown = CampaignBar(campaign, is_silent=as_json)
    report = anyio.run(_run, campaign, shown, backend_options={"use_uvloop": True})
    is_kept = keep or not report.is_clean
    if not is_kept:
        clear(place)
    kept = str(place) if is_kept else None
    if as_json:
        show_json({**report.document(), "kept": kept})
    else:
        click.echo("\n".join(tally_lines(report, kept)))
    sys.exit(OK if report.is_clean else FAILED)


async def _run(campaign: Campaign, shown: CampaignBar) -> Report:
    """Do it, show how it goes, and end early and in order at a signal."""
    async with create_task_group() as tasks:
        tasks.start_soon(_end_at_signal, tasks.cancel_scope)
        tasks.start_soon(shown.keep_showing)
        await campaign.run()
        tasks.cancel_scope.cancel()
    return campaign.report()


async def _end_at_signal(scope: CancelScope) -> None:
    with open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for _ in signals:
            scope.cancel()


def _folder_for(folder: Path | None) -> Path:
    """An empty folder for the throw-away homes. Raises CommandFailure for anything that is in
    use."""
    real = find_places(None, None, os.environ).home.resolve()
    base = (Path(tempfile.gettempdir()) if folder is None else folder.expanduser()).resolve()
    if base == real or real in base.parents:
        words = f"{base} belongs to the home of your gateway, which is never tortured"
        raise CommandFailure(WRONG_SETUP, "home", words)
    try:
        if folder is None:
            return Path(tempfile.mkdtemp(prefix="koboshi-torture-", dir=base))
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(base.iterdir()):
            words = f"{base} is not empty; a torture takes a new or empty folder"
            raise CommandFailure(WRONG_SETUP, "home", words)
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise CommandFailure(WRONG_SETUP, "home", f"{base} cannot be used: {said}") from error
    return base
