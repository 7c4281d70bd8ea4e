"""Building a version at its final path: an environment and what it holds."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution, entry_points, requires
from pathlib import Path

from koboshi.app.plugins import MODELS, TOOLS
from koboshi.cli.options import FAILED, WRONG_USE, CommandFailure
from koboshi.cli.update.installation import Installation

PACKAGE = "koboshi"
CHANNELS = "koboshi.channels"
BUILD_SECONDS = 1_800.0
SAID_LINES = 12
_VERSION = re.compile(r"[0-9][0-9A-Za-z.!+-]{0,60}")
_WHEEL = re.compile(r"koboshi-([0-9][0-9A-Za-z.!+]{0,60})(?:-[0-9]\w*)?-py3-none-any\.whl")
_EXTRA = re.compile(r"^\s*([A-Za-z0-9._-]+).*;.*\bextra\s*==\s*['\"]([^'\"]+)['\"]")


def wanted(asked: str) -> tuple[str, str]:
    """The version that was asked for, and where pip finds it: a version, or the file of a wheel.
    Empty means the newest. Raises CommandFailure."""
    if not asked:
        version = newest()
        return version, f"=={version}"
    if asked.endswith(".whl"):
        file, named = Path(asked).absolute(), _WHEEL.fullmatch(Path(asked).name)
        if named is None or not file.is_file():
            raise CommandFailure(WRONG_USE, "version", f"{asked} is no wheel of koboshi")
        return named[1], f" @ {file.as_uri()}"
    if not _VERSION.fullmatch(asked):
        raise CommandFailure(WRONG_USE, "version", f"{asked} is no version")
    return asked, f"=={asked}"


def newest() -> str:
    """The newest version that pip finds. Raises CommandFailure."""
    said = run_told(
        _pip(sys.executable, "--dry-run", "--no-deps", "--ignore-installed", "--report", "-"),
        PACKAGE,
    )
    try:
        version = json.loads(said)["install"][0]["metadata"]["version"]
    except (ValueError, LookupError, TypeError) as error:
        raise CommandFailure(FAILED, "pip", "pip does not say which version is newest") from error
    return str(version)


def build(ours: Installation, version: str, where: str) -> None:
    """Have `version` stand whole in its folder, with the extras and plug-ins that this one has.

    What an attempt that died has left is removed first. Raises CommandFailure; what is there then
    does not count.
    """
    if ours.is_whole(version):
        return
    folder = ours.folder(version)
    if folder.exists():
        shutil.rmtree(folder)
    try:
        _fill(folder, version, where)
    except CommandFailure:
        shutil.rmtree(folder, ignore_errors=True)  # a full disk may be why
        raise
    os.sync()
    ours.mark_whole(version)


def _fill(folder: Path, version: str, where: str) -> None:
    """Make the environment, and see that it is what was asked for. Raises CommandFailure."""
    run_told([base_python(), "-m", "venv"], str(folder))
    extras = ",".join(installed_extras())
    own = f"{PACKAGE}[{extras}]{where}" if extras else f"{PACKAGE}{where}"
    run_told(_pip(str(folder / "bin" / "python")), own, *plugin_requirements())
    said = run_told([str(folder / "bin" / "koboshi"), "version"], "--json")
    found = json.loads(said).get("koboshi")
    if found != version:
        raise CommandFailure(FAILED, "version", f"pip installed {found}, not {version}")


def base_python() -> str:
    """The interpreter that environments are made of."""
    base: str = getattr(sys, "_base_executable", "") or sys.executable
    return base


def installed_extras(listed: Iterable[str] | None = None) -> tuple[str, ...]:
    """The extras of ours whose distributions are all here."""
    needs: dict[str, set[str]] = {}
    for line in (requires(PACKAGE) or ()) if listed is None else listed:
        if found := _EXTRA.match(line):
            needs.setdefault(found[2], set()).add(found[1])
    return tuple(sorted(extra for extra, names in needs.items() if all(map(_is_here, names))))


def plugin_requirements() -> tuple[str, ...]:
    """The distributions that add something to this one, at their versions."""
    found = {
        f"{point.dist.name}=={point.dist.version}"
        for group in (TOOLS, MODELS, CHANNELS)
        for point in entry_points(group=group)
        if point.dist is not None and point.dist.name != PACKAGE
    }
    return tuple(sorted(found))


def run_told(command: Sequence[str], *more: str, environ: Mapping[str, str] | None = None) -> str:
    """What the command writes. Raises CommandFailure with its last lines if it fails."""
    try:
        done = subprocess.run(
            [*command, *more],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=BUILD_SECONDS,
            check=False,
            env=None if environ is None else dict(environ),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandFailure(FAILED, "command", f"{command[0]}: {error}") from error
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-SAID_LINES:])
        name = " ".join(Path(word).name if word == command[0] else word for word in command[:3])
        raise CommandFailure(FAILED, "command", f"`{name} …` failed:\n{said}")
    return done.stdout


def _pip(python: str, *more: str) -> list[str]:
    quiet = ("--quiet", "--no-input", "--disable-pip-version-check")
    return [python, "-m", "pip", "install", *quiet, *more]


def _is_here(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
