"""What `koboshi doctor --fix` can mend: each remedy that is mechanical and does no harm.

A fix says what it would do, as a value; only `mend` does it. Whatever needs a decision is left to a
person: other people's files, units written or changed by hand, anything that stops a gateway.
"""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, assert_never

from koboshi.cli.service.command import run_step
from koboshi.cli.service.files import UnitFileStanding, standing, write_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMode:
    """Close a file or folder of ours to others."""

    path: Path
    mode: int

    @property
    def words(self) -> str:
        return f"chmod {self.mode:o} {shlex.quote(str(self.path))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """Run a command that is safe to run at any time."""

    step: tuple[str, ...]

    @property
    def words(self) -> str:
        return shlex.join(self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteUnit:
    """Write a unit again that an earlier koboshi wrote and that was not changed since. The gateway
    is not restarted."""

    file: Path
    text: str
    reload: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"wrote {self.file} again, and {shlex.join(self.reload)}"


Fix: TypeAlias = SetMode | RunStep | RewriteUnit


def mend(fix: Fix) -> str | None:
    """Do it. None if it went well, else why not."""
    try:
        match fix:
            case SetMode(path=path, mode=mode):
                os.chmod(path, mode)
                return None
            case RunStep(step=step):
                return run_step(step)
            case RewriteUnit():
                return _rewrite(fix)
            case _:
                assert_never(fix)
    except OSError as error:
        return (error.strerror or str(error)).lower()


def _rewrite(fix: RewriteUnit) -> str | None:
    # Looked at again: it may have been changed since it was judged.
    if standing(fix.file, fix.text) is not UnitFileStanding.OURS:
        return "it was changed in the meantime"
    write_whole(fix.file, fix.text)
    return run_step(fix.reload)
