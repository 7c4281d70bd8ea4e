"""What a start has to do with an update: it is on trial, it goes back, or neither."""

import fcntl
import os
import sys
from collections.abc import MutableMapping
from functools import partial
from pathlib import Path

from koboshi import __version__
from koboshi.app.update_start import GoingBack, OnTrial
from koboshi.cli.options import WRONG_SETUP, CommandFailure
from koboshi.cli.update.installation import Installation, VersionTrial, own_installation
from koboshi.cli.update.launcher import LOCK_VARIABLE
from koboshi.clock import SystemClock


def update_part(
    environ: MutableMapping[str, str], home: Path, prefix: Path | None = None
) -> OnTrial | GoingBack | None:
    """Raises CommandFailure for a version on trial that its launcher did not start: it would serve
    uncounted, and be taken back with what it had received."""
    lock = environ.pop(LOCK_VARIABLE, "")
    prefix = Path(sys.prefix) if prefix is None else prefix
    ours = own_installation(prefix)
    trial = None if ours is None else ours.trial()
    if ours is None or trial is None or trial.home != os.path.realpath(home):
        return None
    version, current = prefix.name, ours.current
    if version == current and trial.goes_back:
        return GoingBack(finish=partial(_finish, ours, trial), version=trial.version)
    if version != trial.version or version == current:
        return None
    if not lock.isdigit():
        words = f"{version} is on trial here; start it by {ours.launcher}"
        raise CommandFailure(WRONG_SETUP, "trial", words)
    os.set_inheritable(int(lock), False)
    return OnTrial(confirm=partial(_confirm, ours, trial, int(lock)))


def _confirm(ours: Installation, trial: VersionTrial, lock: int) -> None:
    """The version on trial serves from now on. The link is what counts: a kill behind it leaves a
    trial that the launcher finds decided."""
    ours.switch(trial.version)
    ours.forget()
    ours.note(outcome="serves", version=trial.version, before=trial.before, at_ms=_now_ms())
    fcntl.flock(lock, fcntl.LOCK_UN)


def _finish(ours: Installation, trial: VersionTrial) -> None:
    """The version before serves again, on the database that it knows."""
    ours.note(
        outcome="went-back",
        version=trial.version,
        before=__version__,
        why=trial.why,
        at_ms=_now_ms(),
    )
    ours.forget()


def _now_ms() -> int:
    return SystemClock().now_ms()
