"""How a torture goes, while it goes, and its tally in lines for a person."""

import sys
from collections import defaultdict

import click
from anyio import sleep

from koboshi.cli.options import counted
from koboshi.torture import Campaign, Report
from koboshi.torture.faults import Fault
from koboshi.torture.results import TrialTally

DRAWN_EVERY_S = 0.25
SAID_EVERY_S = 5.0
VIOLATIONS_SHOWN = 20


class CampaignBar:
    """A bar on a terminal, a line now and then elsewhere, on stderr. Nothing for programs."""

    def __init__(self, campaign: Campaign, *, is_silent: bool) -> None:
        self._campaign = campaign
        self._is_silent = is_silent

    async def keep_showing(self) -> None:
        """Show it until cancelled."""
        if self._is_silent:
            return
        if sys.stderr.isatty():
            await self._draw()
        while True:
            await sleep(SAID_EVERY_S)
            click.echo(progress_words(self._campaign.report()), err=True)

    async def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        settings = self._campaign.settings
        columns = (
            BarColumn(bar_width=30),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            minutes = settings.minutes or 0
            total = settings.lives if settings.lives is not None else 60 * minutes
            task = bar.add_task("", total=total)
            while True:
                report = self._campaign.report()
                done = report.tally.lives if settings.lives is not None else report.seconds
                bar.update(task, completed=done, description=progress_words(report))
                await sleep(DRAWN_EVERY_S)


def progress_words(report: Report) -> str:
    """Where it is, on one line."""
    tally = report.tally
    planned = report.settings.lives
    lives = f"{tally.lives}" if planned is None else f"{tally.lives} of {planned}"
    found = counted(len(tally.violations), "violation")
    return f"{lives} lives, {tally.messages} messages, {tally.answers} answers, {found}"


def tally_lines(report: Report, kept: str | None) -> list[str]:
    """All of it."""
    tally = report.tally
    lines = [
        _line("lives", f"{tally.lives}"),
        _line("  that loaded it anew", f"{tally.cold_starts}"),
        _line("kills by place", f"{report.kills}"),
        *_kill_lines(report),
        _line("messages", f"{tally.messages} ({tally.repeats} posts had to be repeated)"),
        _line("answers", f"{tally.answers} (and {tally.ends_told} other ends told)"),
        _line("commands run", f"{tally.commands}{_inside(tally)}"),
        _line("jobs reported", f"{tally.jobs}"),
        _line("on the bot platform", _visits_words(report)),
        *_mishap_lines(report),
        _line("rights taken away", f"{tally.rights_taken}"),
        _line("runners killed", f"{tally.runners_killed}"),
        _line("lives with few files", _files_words(report)),
        _line("clocks", f"{tally.wrong_clocks} wrong from the start, {tally.clock_jumps} jumped"),
        _line("model outages", f"{tally.outages}"),
        "",
        _line("lost", f"{tally.count(Fault.LOST)}"),
        _line("doubled", f"{tally.count(Fault.DOUBLED)}"),
        _line("commands run twice", f"{tally.count(Fault.RAN_TWICE)}"),
        _line("other violations", f"{tally.others}"),
        "",
        _line("seconds", f"{report.seconds:.1f} ({report.kills_per_minute:.0f} kills a minute)"),
        _line("seed", f"{report.settings.seed}"),
        _line("repeat it", report.repeat),
    ]
    lines += [f"violation: {each}" for each in tally.violations[:VIOLATIONS_SHOWN]]
    if len(tally.violations) > VIOLATIONS_SHOWN:
        lines.append(f"… and {len(tally.violations) - VIOLATIONS_SHOWN} more")
    if not report.is_complete:
        lines.append("It was ended early: what happened since the last check is not checked.")
    if kept is not None:
        lines.append(f"The homes are kept in {kept}")
    return lines


def _visits_words(report: Report) -> str:
    tally = report.tally
    copies = f"{tally.copies} copies labelled"
    return f"{tally.visits} messages, {tally.visits_answered} answered or told, {copies}"


def _files_words(report: Report) -> str:
    tally = report.tally
    return f"{tally.few_files} ({tally.ran_short} ran short, {tally.gave_out} ended by it)"


def _mishap_lines(report: Report) -> list[str]:
    """What the platform did to calls of the bot, the most frequent first."""
    return [f"  {name:<40}{times}" for name, times in report.tally.mishaps.most_common()]


def _kill_lines(report: Report) -> list[str]:
    """Random ones, then each step with its two moments."""
    tally = report.tally
    moments: dict[str, dict[str, int]] = defaultdict(dict)
    for place, times in tally.kills.items():
        verb, _, moment = place.partition(":")
        if moment:
            moments[verb][moment] = times
    missed = f" ({tally.missed} had a step planned and did not come by it)" if tally.missed else ""
    lines = [_line("  at random", f"{tally.kills['random']}{missed}")]
    for verb, found in sorted(moments.items()):
        before, after = found.get("before", 0), found.get("after", 0)
        lines.append(_line(f"  {verb}", f"before {before}, after {after}"))
    return lines


def _inside(tally: TrialTally) -> str:
    """What stood around the commands."""
    found = (f"{count} inside {name}" for name, count in sorted(tally.boundaries.items()))
    words = ", ".join(each.replace("inside none", "on the host") for each in found)
    return f" ({words})" if words else ""


def _line(name: str, words: str) -> str:
    return f"{name:<24}{words}"
