"""`koboshi doctor`: is this machine right for a gateway, and how is the one that is here?"""

import os
import sys
from pathlib import Path

import click

from koboshi.cli.ask_owner import loaded
from koboshi.cli.doctor_checks import Finding, Severity, examine, exit_code
from koboshi.cli.doctor_facts import gather
from koboshi.cli.doctor_more import examine_more, examine_online
from koboshi.cli.options import (
    OK,
    WRONG_SETUP,
    Failure,
    counted,
    failures_told,
    home_options,
    json_option,
    show_json,
)
from koboshi.config import ConfigError
from koboshi.config.problems import escaped


@click.command()
@click.option("--online", is_flag=True, help="Call every bot's platform and the model, once each.")
@home_options
@json_option
def doctor(home: Path | None, config_file: Path | None, as_json: bool, online: bool) -> None:
    """Look for what is wrong, or will be, and say what to do about it. Changes nothing.

    Ends with 0 if nothing is wrong (warnings do not count), 78 if the configuration or the home
    is, and 1 for everything else.
    """
    with failures_told(as_json):
        try:
            facts = gather(home, config_file, os.environ)
            findings = examine(facts) + examine_more(facts)
            if online:
                config = loaded(home, config_file)
                findings += tuple(examine_online(config))
        except ConfigError as error:
            raise Failure(WRONG_SETUP, "config", str(error)) from error
    code = exit_code(findings)
    if as_json:
        listed = [
            {
                "check": name,
                "severity": str(found.severity),
                "words": found.words,
                "remedy": found.remedy,
            }
            for name, found in findings
        ]
        show_json({"ok": code == OK, "findings": listed})
    else:
        click.echo(render(findings))
    sys.exit(code)


def render(findings: tuple[tuple[str, Finding], ...]) -> str:
    """The findings in lines for a person, and a sum."""
    lines: list[str] = []
    for name, found in findings:
        words = "\n    ".join(escaped(line) for line in found.words.splitlines())
        lines.append(f"{found.severity:<8} {name}: {words}")
        if found.remedy:
            lines.append(f"         -> {escaped(found.remedy)}")
    severities = [found.severity for _, found in findings]
    errors, warnings = (severities.count(each) for each in (Severity.ERROR, Severity.WARNING))
    return "\n".join((*lines, "", f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"))
