"""How a runner begins: forked by a nursery, or started alone where there is none."""

import contextlib
import os
import signal
from dataclasses import dataclass, field

from koboshi.processes.nursery import Nursery
from koboshi.processes.pinned import BEGIN, PROGRAM_FILE, open_program


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A runner that may not be born yet."""

    child: int = 0
    """Its pid if it is our own child: then it has no other owner until we bury it."""
    process: int = -1
    """Its descriptor if it is a nursery's child, and there is one."""

    def kill(self) -> None:
        if self.child:
            os.kill(self.child, signal.SIGKILL)
        elif self.process >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.process, signal.SIGKILL)

    def close(self) -> None:
        if self.process >= 0:
            os.close(self.process)


@dataclass(slots=True, kw_only=True)
class Births:
    program: bytes
    _nurseries: dict[tuple[str, bool], Nursery] = field(default_factory=dict, init=False)
    """By the interpreter, and by whether their runners are kept off our ports. Each is started by
    the thread that asks for its first runner, and may do what that thread may."""

    def begin(
        self, python: str, folder: str, files: tuple[int, int, int], *, is_guarded: bool
    ) -> Begun:
        """Begin a runner that has these as its files 0, 1 and 2. Raises OSError."""
        made = Nursery(python, self.program, environment_of_python())
        process = self._nurseries.setdefault((python, is_guarded), made).bear(folder, files)
        if process is not None:
            return Begun(process=process)
        program = open_program(self.program)
        try:
            return Begun(child=_spawn(python, folder, files, program))
        finally:
            os.close(program)


def _spawn(python: str, folder: str, files: tuple[int, int, int], program: int) -> int:
    return os.posix_spawn(
        python,
        [python, "-I", "-S", "-c", BEGIN, folder],
        environment_of_python(),
        file_actions=[
            *((os.POSIX_SPAWN_DUP2, file, place) for place, file in enumerate(files)),
            (os.POSIX_SPAWN_DUP2, program, PROGRAM_FILE),
        ],
        setsigmask=(),
    )


def environment_of_python() -> dict[str, str]:
    """What the loader may need to find the libraries of the interpreter, as it did for us."""
    names = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
    return {name: os.environ[name] for name in names if name in os.environ}
