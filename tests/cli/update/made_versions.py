"""Installations whose versions are small: a folder with a `bin/koboshi`, and no environment."""

import os
import subprocess
import sys
from pathlib import Path

from koboshi.cli.update.installation import Installation, VersionTrial, made

SERVED = "served"

FAKE = """\
#!/bin/sh
root={root}
echo "{version} started" >> "$root/served"
{does}
"""
BEHAVIOURS = {
    "serves": 'echo "{version} serves" >> "$root/served"; exit 0',
    "confirms": 'ln -s versions/{version} "$root/.c"; mv -T "$root/.c" "$root/current"; '
    'rm "$root/trial.json"; echo "{version} serves" >> "$root/served"; exit 0',
    "dies": "kill -9 $$",
    "dies-confirmed": 'ln -s versions/{version} "$root/.c"; mv -T "$root/.c" "$root/current"; '
    "kill -9 $$",
    "ends": "exit 0",
    "refuses": "exit 78",
    "hangs": "exec tail -f /dev/null",
}

REAL = """\
#!{python}
import sys
sys.prefix = {prefix!r}
{before}
from koboshi.cli.main import main
main()
"""


def installation(root: Path) -> Installation:
    return made(root)


def add_fake(ours: Installation, version: str, behaviour: str) -> None:
    """A version that only writes down that it was started, and does one thing."""
    does = BEHAVIOURS[behaviour].format(version=version)
    _add(ours, version, FAKE.format(root=ours.root, version=version, does=does))


def add_real(ours: Installation, version: str, before: str = "") -> None:
    """This very koboshi under another version, with something changed in it before it begins."""
    program = REAL.format(
        python=sys.executable,
        prefix=str(ours.folder(version)),
        before=f"import koboshi\nkoboshi.__version__ = {version!r}\n{before}",
    )
    _add(ours, version, program)


def _add(ours: Installation, version: str, program: str) -> None:
    script = ours.folder(version) / "bin" / "koboshi"
    script.parent.mkdir(parents=True)
    script.write_text(program)
    script.chmod(0o755)
    (script.parent / "python").symlink_to(sys.executable)
    ours.mark_whole(version)


def begin(ours: Installation, version: str, home: Path, **more: int | float | str) -> None:
    """A trial of the version, before its first start."""
    trial = VersionTrial(version=version, before=ours.current, home=os.path.realpath(home))
    known = {name: getattr(trial, name) for name in VersionTrial.__slots__}
    ours.begin(VersionTrial(**{**known, **more}))


def start(ours: Installation, home: Path, within_s: float = 100.0) -> int:
    """Start it as a service would, and wait for its end."""
    done = subprocess.run(
        [str(ours.launcher), "run", "--home", str(home)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=within_s,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    return done.returncode


def served(ours: Installation) -> list[str]:
    """What the versions wrote down, in order."""
    try:
        return (ours.root / SERVED).read_text().splitlines()
    except FileNotFoundError:
        return []
