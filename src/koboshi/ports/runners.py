"""Commands under their runners: small separate programs that outlive the gateway.

A runner keeps its facts in files beside its log, so any process can read them at any time: a bare
pid is never trusted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from koboshi.domain.ids import ProcessId
from koboshi.domain.process import Birth
from koboshi.domain.sandbox import Boundary


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """How a program is kept inside its boundary, ready to be applied."""

    boundary: Boundary
    launcher: tuple[str, ...] = ()
    """What stands before the program: bubblewrap with its arguments."""
    grants: tuple[tuple[str, int], ...] = ()
    """Under Landlock: what stays possible, as (path, rights)."""
    has_network: bool = True
    memory_bytes_max: int = 0
    """For the data of one process; 0: no limit."""
    processes_max: int = 0
    """Threads included; 0: no limit. For the groups, or, without any, for all processes of the
    user together, of which the kernel does not count root's."""
    groups: tuple[str, ...] = ()
    """The control groups that it joins, which have these limits as a whole."""


UNCONFINED = Confinement(boundary=Boundary.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """A command as it will run, exactly: what was approved is what is started."""

    command: str
    workdir: str
    environment: Mapping[str, str]
    timeout_seconds: float
    takes_input: bool
    """Whether `write` can reach its standard input; otherwise that is empty."""
    confinement: Confinement = UNCONFINED
    unread_max: int = 0
    """Of an agent: how many bytes of its output may wait to be read, before it has to wait. Its
    input are numbered messages, and its output is kept whole (`ports/wires.py`). 0: no agent."""


class NotHere(Exception):
    """The process belongs to another home: its files are there, and say nothing here."""


class EndedBy(StrEnum):
    ITSELF = "itself"  # it exited, or died of a signal that we did not send
    REQUEST = "request"  # the gateway asked its runner to end it
    TIMEOUT = "timeout"  # it ran longer than it was allowed to
    START = "start"  # it could not be started


class EndReason(StrEnum):
    """Why a command ended by itself, and yet not by its own will."""

    OUT_OF_MEMORY = "out-of-memory"  # the kernel killed it, or one of its processes
    TOLD_TO_STOP = "told-to-stop"  # its runner was, not by the gateway: the service manager, say


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command ended, from its runner's own record."""

    by: EndedBy
    reason: EndReason | None = None
    exit_code: int | None
    signal: int | None
    ended_ms: int
    error: str = ""


class Life(StrEnum):
    """All cases that the files of a process tell."""

    UNBORN = "unborn"  # no files, or voided: it never ran and never will
    ALIVE = "alive"  # its runner holds the lock
    ENDED = "ended"  # there is a record of the end
    LOST = "lost"  # born, no lock, no record: killed together with its runner, or a reboot


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    life: Life
    birth: Birth | None = None
    ending: Ending | None = None
    is_other_boot: bool = False
    """The machine was rebooted after its birth."""
    has_no_files: bool = False
    """It is lost because its row says that it ran, and its files are gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSlice:
    """Bytes of the output from `offset` on. The log keeps its head and its tail: `dropped` bytes
    between the requested offset and `offset` are gone."""

    offset: int
    content: bytes
    total: int
    """How many bytes the command has written so far."""
    dropped: int = 0


class Runners(Protocol):
    async def start(self, process_id: ProcessId, spec: CommandSpec) -> Birth | None:
        """Start the command under a new runner. Returns once it is durably born; None if it ended
        before. Raises OSError if the runner could not be started."""
        ...

    def look(self, process_id: ProcessId) -> Seen:
        """Its state now. Also settles that an unborn process stays so: it never begins."""
        ...

    async def wait(self, process_id: ProcessId, at_most_s: float | None = None) -> Seen:
        """Look again when it has ended, or after the time. Works for runners of earlier boots."""
        ...

    async def end(self, process_id: ProcessId, *, grace_s: float) -> Seen:
        """End its whole tree: TERM, and after the grace KILL. Harmless when it has ended."""
        ...

    def read_log(self, process_id: ProcessId, offset: int, limit: int) -> LogSlice:
        """A part of its output; a negative `offset` counts from the end. Safe in any thread."""
        ...

    def log_size(self, process_id: ProcessId) -> int:
        """How much it has printed so far; 0 if that cannot be known."""
        ...

    async def write(self, process_id: ProcessId, content: bytes) -> bool:
        """Give it input. False if it takes none."""
        ...

    def remove(self, process_id: ProcessId) -> None:
        """Delete its files. Only for one that has ended."""
        ...
