"""A gateway as far as runners are concerned: starts one command and dies where it is told.

python -m tests.runner.gateway <folder> <workdir> <boundary> <moment> <command>
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio

from koboshi.domain.ids import ProcessId
from koboshi.domain.sandbox import Boundary
from koboshi.ports.runners import CommandSpec
from koboshi.processes.births import Begun, Births
from koboshi.processes.runners import LocalRunners
from tests.runner.insides import confining

PROCESS = ProcessId(1)
BEFORE_SPAWN, AFTER_SPAWN, AFTER_BIRTH, AT_ANY_TIME = "before", "after", "birth", "any"


def main(folder: str, workdir: str, boundary: str, moment: str, command: str) -> None:
    begin = Births.begin

    def dying_begin(births: Births, *arguments: Any, **options: Any) -> Begun:
        if moment == BEFORE_SPAWN:
            die()
        begun = begin(births, *arguments, **options)
        if moment == AFTER_SPAWN:
            die()
        return begun

    Births.begin = dying_begin  # type: ignore[method-assign, assignment]
    confine = confining(Boundary(boundary), Path(workdir), Path(workdir).with_name("kept"))
    spec = CommandSpec(
        command=command,
        workdir=workdir,
        environment={"PATH": os.environ["PATH"]},
        timeout_seconds=60,
        takes_input=False,
        confinement=confine(workdir),
    )
    anyio.run(start, LocalRunners(Path(folder)), moment, spec)


async def start(runners: LocalRunners, moment: str, spec: CommandSpec) -> None:
    await runners.start(PROCESS, spec)
    if moment == AFTER_BIRTH:
        die()
    await runners.wait(PROCESS)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
