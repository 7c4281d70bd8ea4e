"""Whether the file of a systemd unit is still what this koboshi would write for the service."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from koboshi.cli.options import CommandFailure
from koboshi.cli.service.files import is_untouched
from koboshi.cli.service.plan import SYSTEM_USER, SYSTEMD, Wish, plan, program


def renewed(found: str, *, is_system: bool, environ: Mapping[str, str]) -> str | None:
    """The unit as we would write it today, with the home, the user and the search path that the
    found one has.

    None if that is not ours to say: it was changed by hand, another installation wrote it, or its
    configuration cannot be read from here.
    """
    if not is_untouched(found):
        return None
    words = [word.replace("%%", "%") for word in _words_of(found, "ExecStart")]
    command = [word.removeprefix(":") for word in words]
    run = len(program())
    if tuple(command[:run]) != program() or command[run : run + 1] != ["run"]:
        return None
    options = dict(zip(command[run + 1 :: 2], command[run + 2 :: 2], strict=False))
    if "--home" not in options or not {*options} <= {"--home", "--config"}:
        return None
    config = options.get("--config")
    wish = Wish(
        kind=SYSTEMD,
        is_system=is_system,
        run_as="".join(_words_of(found, "User")) or SYSTEM_USER,
        home=Path(options["--home"]),
        config_file=None if config is None else Path(config),
    )
    try:
        planned = plan(wish, {**environ, "PATH": _path_of(found)})
    except CommandFailure:
        return None
    # A note tells that something cannot be seen from here; then what we would write is a guess.
    return None if planned.notes else planned.text


def _words_of(text: str, name: str) -> list[str]:
    line = re.search(rf"^{name}=(.*)$", text, re.MULTILINE)
    return shlex.split(line[1]) if line else []


def _path_of(text: str) -> str:
    named = [word.replace("%%", "%") for word in _words_of(text, "Environment")]
    return next((word.removeprefix("PATH=") for word in named if word.startswith("PATH=")), "")
