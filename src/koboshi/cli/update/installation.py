"""An installation that can update itself: versions side by side, and a link to the one that serves.

    <root>/bin/koboshi            what people and services start
    <root>/launch.py              starts a version that is on trial (`launcher.py`)
    <root>/versions/<version>/    an environment, built at this very path
    <root>/current                a link to the version that serves
    <root>/trial.json             an update that is not decided yet
    <root>/last-update.json       how the last one ended, for people

A version counts when its mark is there, which is written last. `current` is replaced by rename.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from koboshi.cli.update.launcher import (
    CURRENT,
    LOCK,
    VERSIONS,
    flush,
    forget_trial,
    read_trial,
    serving,
    write_durably,
    write_trial,
)

MARK = "installation.json"
WHOLE = "koboshi-whole.json"
LAST = "last-update.json"
LAUNCH = "launch.py"
LAYOUT = 1
STARTS_MAX = 3
READY_SECONDS = 90.0

_SCRIPT = """\
#!/bin/sh
# Starts the koboshi that serves. While an update is on trial, launch.py watches over its start.
root={root}
if [ "$1" = run ] && [ -e "$root/trial.json" ]; then
    exec "$root/current/bin/python" -I -S "$root/launch.py" "$root" "$@"
fi
exec "$root/current/bin/koboshi" "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionTrial:
    """An update that waits for its start, is being tried, or is being undone."""

    version: str
    before: str
    home: str
    starts: int = 0
    starts_max: int = STARTS_MAX
    ready_seconds: float = READY_SECONDS
    phase: str = "trial"
    why: str = ""

    @property
    def goes_back(self) -> bool:
        return self.phase == "back"


@dataclass(frozen=True, slots=True)
class Installation:
    root: Path

    @property
    def launcher(self) -> Path:
        """What a service starts."""
        return self.root / "bin" / "koboshi"

    @property
    def lock(self) -> Path:
        return self.root / LOCK

    @property
    def current(self) -> str:
        """The version that serves; empty if there is none yet."""
        return serving(self.root)

    def folder(self, version: str) -> Path:
        return self.root / VERSIONS / version

    def is_whole(self, version: str) -> bool:
        return (self.folder(version) / WHOLE).is_file()

    def mark_whole(self, version: str) -> None:
        """From now on the version counts: all of it is on the disk."""
        write_durably(self.folder(version) / WHOLE, json.dumps({"version": version}).encode())
        flush(self.root / VERSIONS)

    def versions(self) -> tuple[str, ...]:
        """Those that are there, whole or not."""
        folders = (self.root / VERSIONS).glob("*")
        return tuple(sorted(each.name for each in folders if each.is_dir()))

    def switch(self, version: str) -> None:
        """Have `version` serve from the next start on. Durable when it returns."""
        new = self.root / f".{CURRENT}.{os.getpid()}"
        new.unlink(missing_ok=True)
        new.symlink_to(Path(VERSIONS, version))
        os.replace(new, self.root / CURRENT)
        flush(self.root)

    def trial(self) -> VersionTrial | None:
        found = read_trial(self.root)
        return None if found is None else _trial_of(found)

    def begin(self, trial: VersionTrial) -> None:
        write_trial(self.root, {name: getattr(trial, name) for name in VersionTrial.__slots__})

    def forget(self) -> None:
        forget_trial(self.root)

    def note(self, **last: object) -> None:
        """Tell people how an update ended. Nothing rests on it."""
        write_durably(self.root / LAST, json.dumps(last).encode())

    def last(self) -> Mapping[str, object]:
        try:
            found = json.loads((self.root / LAST).read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def remove(self, version: str) -> None:
        """Its mark goes first: what a kill leaves of it does not count, and is removed later."""
        (self.folder(version) / WHOLE).unlink(missing_ok=True)
        shutil.rmtree(self.folder(version))
        flush(self.root / VERSIONS)

    def in_use(self) -> frozenset[str]:
        """Versions that a process was started from: a gateway, or the runner of a command."""
        prefix = f"{self.root / VERSIONS}/"
        words = (word for line in _command_lines() for word in line)
        return frozenset(
            word.removeprefix(prefix).partition("/")[0] for word in words if word.startswith(prefix)
        )


def made(root: Path) -> Installation:
    """The installation at `root`, with its launcher as this version has it."""
    found = Installation(root)
    for folder in (root / "bin", root / VERSIONS):
        folder.mkdir(parents=True, exist_ok=True)
    launch = files("koboshi.cli.update").joinpath("launcher.py").read_bytes()
    write_durably(root / LAUNCH, launch)
    quoted = "'" + str(root).replace("'", "'\\''") + "'"
    write_durably(found.launcher, _SCRIPT.format(root=quoted).encode())
    found.launcher.chmod(0o755)
    write_durably(root / MARK, json.dumps({"layout": LAYOUT}).encode())
    return found


def own_installation(prefix: Path | None = None) -> Installation | None:
    """The installation that this program belongs to; None if another installer made it."""
    prefix = Path(sys.prefix) if prefix is None else prefix
    root = prefix.parent.parent
    is_ours = prefix.parent.name == VERSIONS and (root / MARK).is_file()
    return Installation(root) if is_ours else None


def _trial_of(found: Mapping[str, object]) -> VersionTrial | None:
    match found:
        case {"version": str(version), "before": str(before), "home": str(home)}:
            starts, most = found.get("starts"), found.get("starts_max")
            seconds = found.get("ready_seconds")
            return VersionTrial(
                version=version,
                before=before,
                home=home,
                starts=starts if isinstance(starts, int) else 0,
                starts_max=most if isinstance(most, int) else STARTS_MAX,
                ready_seconds=float(seconds) if isinstance(seconds, int | float) else READY_SECONDS,
                phase=str(found.get("phase", "trial")),
                why=str(found.get("why", "")),
            )
        case _:
            return None


def _command_lines() -> Iterator[list[str]]:
    if not Path("/proc/self/cmdline").exists():
        import subprocess

        listed = ["ps", "-axo", "command"]
        done = subprocess.run(listed, capture_output=True, text=True, check=False)
        yield from (line.split() for line in done.stdout.splitlines())
        return
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                yield (each / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:  # it has ended meanwhile
                continue
