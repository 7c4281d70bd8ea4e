"""`koboshi doctor`: is this machine right for a gateway, and how is the one that is here?"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from koboshi.cli.ask_owner import loaded
from koboshi.cli.doctor.checks import DoctorFinding, Severity, examine, exit_code
from koboshi.cli.doctor.facts import gather
from koboshi.cli.doctor.fixes import Fix, mend
from koboshi.cli.doctor.more_checks import examine_more
from koboshi.cli.doctor.server_checks import examine_store
from koboshi.cli.doctor.update_check import examine_update
from koboshi.cli.options import (
    OK,
    WRONG_SETUP,
    CommandFailure,
    counted,
    failures_told,
    home_options,
    json_option,
    show_json,
)
from koboshi.cli.progress_bar import Show, bar
from koboshi.config import ConfigError
from koboshi.config.problems import escaped

Findings = tuple[tuple[str, DoctorFinding], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """What was tried for one finding."""

    check: str
    words: str
    did: str
    error: str = ""
    """Why it could not be done; empty if it was."""


@click.command()
@click.option(
    "--fix", "fixes", is_flag=True, help="Fix what is safe to fix, and say what was fixed."
)
@click.option("--online", is_flag=True, help="Call every bot's platform and the model, once each.")
@home_options
@json_option
def doctor(
    fixes: bool, home: Path | None, config_file: Path | None, as_json: bool, online: bool
) -> None:
    """Look for what is wrong, or will be, and say what to do about it. Without --fix, nothing is
    changed; with it, what needs no decision is fixed: permissions of our own files, a unit that an
    earlier koboshi wrote and that was not changed since, what systemd has not read yet, lingering.

    Ends with 0 if nothing is wrong (warnings do not count), 78 if the configuration or the home
    is, and 1 for everything else; with --fix, as it is afterwards.
    """
    with failures_told(as_json), bar(not as_json) as show:
        findings = _examined(home, config_file, show)
        mended: tuple[Mended, ...] = ()
        if fixes:
            mended = mend_all(findings, show)
            findings = _examined(home, config_file, show) if mended else findings
        if online:
            findings += _called(home, config_file, show)
    code = exit_code(findings)
    if as_json:
        show_json(_document(findings, mended, is_ok=code == OK))
    else:
        click.echo(render(findings, mended))
    sys.exit(code)


def _examined(home: Path | None, config_file: Path | None, show: Show) -> Findings:
    show("looking", 0, 0)
    try:
        facts = gather(home, config_file, os.environ)
    except ConfigError as error:
        raise CommandFailure(WRONG_SETUP, "config", str(error)) from error
    config = None if facts.config_error else loaded(home, config_file)
    server = () if config is None else examine_store(config)
    return examine(facts) + examine_more(facts, config) + server + examine_update()


def _called(home: Path | None, config_file: Path | None, show: Show) -> Findings:
    from koboshi.cli.doctor.online import examine_online

    return tuple(examine_online(loaded(home, config_file, needs_secrets=True), show))


def mend_all(findings: Findings, show: Show) -> tuple[Mended, ...]:
    """Do whatever the findings offer, each thing once."""
    done: dict[Fix, Mended] = {}
    fixes = len({found.fix for _, found in findings if found.fix is not None})
    for check, found in findings:
        if found.fix is not None and found.fix not in done:
            show(f"mending: {check}", len(done), fixes)
            error = mend(found.fix) or ""
            words, did = found.words, found.fix.words
            done[found.fix] = Mended(check=check, words=words, did=did, error=error)
    return tuple(done.values())


def _document(findings: Findings, mended: Sequence[Mended], *, is_ok: bool) -> dict[str, object]:
    listed = [
        {
            "check": name,
            "severity": str(found.severity),
            "words": found.words,
            "remedy": found.remedy,
            "fixable": found.fix is not None,
        }
        for name, found in findings
    ]
    tried = [
        {"check": each.check, "words": each.words, "did": each.did, "error": each.error or None}
        for each in mended
    ]
    return {"ok": is_ok, "findings": listed, "mended": tried}


def render(findings: Findings, mended: Sequence[Mended] = ()) -> str:
    """What was mended and the findings in lines for a person, and a sum."""
    lines: list[str] = []
    for each in mended:
        how, error = ("failed", f": {each.error}") if each.error else ("mended", "")
        lines.append(f"{how:<8} {each.check}: {escaped(each.words)}")
        lines.append(f"         -> {escaped(each.did + error)}")
    for name, found in findings:
        words = "\n    ".join(escaped(line) for line in found.words.splitlines())
        lines.append(f"{found.severity:<8} {name}: {words}")
        if found.remedy:
            lines.append(f"         -> {escaped(found.remedy)}")
    severities = [found.severity for _, found in findings]
    errors, warnings = (severities.count(each) for each in (Severity.ERROR, Severity.WARNING))
    total = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
    fixable = sum(found.fix is not None for _, found in findings)
    hint = f"; `koboshi doctor --fix` fixes {fixable}" if fixable and not mended else ""
    return "\n".join((*lines, "", f"{total}{hint}"))
