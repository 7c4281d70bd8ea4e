"""`koboshi logs`: the gateway's log, from wherever it goes."""

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import click

from koboshi.cli.ask_owner import ask_gateway, loaded
from koboshi.cli.doctor.facts import loaded_unit
from koboshi.cli.options import FAILED, CommandFailure, failures_told, home_options
from koboshi.cli.service.plan import UNIT
from koboshi.control.requests import GetStatus

LINES = 100


@dataclass(frozen=True, slots=True)
class Journal:
    """systemd keeps it."""

    is_user: bool


@dataclass(frozen=True, slots=True)
class LogFile:
    path: Path


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """It cannot be shown here; the words say why."""

    words: str


Source: TypeAlias = Journal | LogFile | Elsewhere


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Go on showing what is written.")
@click.option(
    "-n", "lines", type=click.IntRange(0), default=LINES, show_default=True, help="How many lines."
)
@home_options
def logs(follow: bool, lines: int, home: Path | None, config_file: Path | None) -> None:
    """Show the gateway's log: the journal's where systemd runs it, else the file it goes to.

    A gateway logs to its stderr, and nowhere else. Where that is a terminal or a pipe, only who
    holds the other end has it.
    """
    with failures_told(as_json=False):
        config = loaded(home, config_file)
        pid = _pid(config.home)
        units = [is_user for is_user in (False, True) if loaded_unit(is_user, os.environ)]
        source = source_of(_stderr_of(pid), units, pid)
        if isinstance(source, Elsewhere):
            raise CommandFailure(FAILED, "no-log", source.words)
        command = command_for(source, lines, follow=follow)
        if shutil.which(command[0]) is None:
            raise CommandFailure(FAILED, "no-log", f"{command[0]} is not installed here")
        os.execvp(command[0], command)


def source_of(stderr: str | None, units: list[bool], pid: int | None) -> Source:
    """Where the log is. `stderr` is where a running gateway's goes, as the kernel names it; `units`
    says of each loaded unit whether it is a user's. Pure but for a look at the file."""
    if stderr is not None and _is_plain(stderr):
        return LogFile(Path(stderr))
    if units and (stderr is None or stderr.startswith("socket:")):
        return Journal(units[0])
    if pid is None:
        words = (
            "no gateway runs in this home, and no systemd unit is loaded. Its log went to where it "
            "was started; `koboshi run 2>>koboshi.log` keeps it, `koboshi service install` gives "
            "it to the journal"
        )
        return Elsewhere(words)
    kinds = {"/dev/pts": "a terminal", "/dev/tty": "a terminal", "pipe:": "a pipe"}
    found = [kind for begin, kind in kinds.items() if stderr and stderr.startswith(begin)]
    where = found[0] if found else stderr or "a place that cannot be read"
    words = f"the gateway (pid {pid}) logs to {where}; `koboshi run 2>>koboshi.log` keeps its log"
    return Elsewhere(words)


def command_for(source: Journal | LogFile, lines: int, *, follow: bool) -> list[str]:
    match source:
        case Journal(is_user=is_user):
            whose = ["--user"] if is_user else []
            wait = ["--follow"] if follow else ["--no-pager"]
            return ["journalctl", *whose, "--unit", UNIT, "--lines", str(lines), *wait]
        case LogFile(path=path):
            return ["tail", "-n", str(lines), *(["-F"] if follow else []), "--", str(path)]


def _pid(home: Path) -> int | None:
    answer = ask_gateway(home, GetStatus())
    worker = None if answer is None else answer.get("worker")
    pid = worker.get("pid") if isinstance(worker, dict) else None
    return pid if isinstance(pid, int) else None


def _stderr_of(pid: int | None) -> str | None:
    """What the gateway's stderr is; None if unknown."""
    try:
        return None if pid is None else os.readlink(f"/proc/{pid}/fd/2")
    except OSError:
        return None


def _is_plain(name: str) -> bool:
    try:
        return name.startswith("/") and stat.S_ISREG(os.stat(name).st_mode)
    except OSError:
        return False
