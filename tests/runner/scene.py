"""A gateway's home with its secrets, and commands of its sessions inside a boundary."""

import os
from dataclasses import replace
from pathlib import Path

from koboshi.boundary.enclosure import Enclosure
from koboshi.ports.runners import EndedBy
from tests.runner.yard import Yard


class Scene:
    """A gateway's home with its secrets, and commands of its sessions."""

    def __init__(self, yard: Yard, enclosure: Enclosure, home: Path) -> None:
        self.yard = yard
        self.enclosure = enclosure
        self.home = home

    async def run(self, command: str, *, session: str = "s1", **variables: str) -> tuple[int, str]:
        """Exit code and output of a command of a session."""
        view = self.enclosure.view_of(session)
        workdir = str(self.yard.workdir)
        started = self.enclosure.start(view, workdir, {"PATH": os.environ["PATH"], **variables})
        self.yard.confine = lambda _: started.confinement
        seen, output = await self.yard.run(command, environment=started.environment)
        assert seen.ending is not None
        assert seen.ending.by is EndedBy.ITSELF, seen.ending.error
        assert seen.ending.exit_code is not None
        return seen.ending.exit_code, output.decode()

    def allow(self, **exceptions: tuple[str, ...]) -> None:
        known = replace(self.enclosure.exceptions, **exceptions)  # type: ignore[arg-type]
        self.enclosure = replace(self.enclosure, exceptions=known)
