"""Programs started by tools."""

from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.ids import CallId, Generation, ProcessId, SessionId, TurnId
from koboshi.domain.machine import Machine, transitions_of
from koboshi.domain.sandbox import Boundary


class ProcessState(StrEnum):
    STARTING = "starting"  # the intent is stored; the runner has not written its birth
    RUNNING = "running"
    EXITED = "exited"
    KILLED = "killed"
    LOST = "lost"  # it ended, or never began, and its outcome is unknown


class ProcessEvent(StrEnum):
    """An end has the name of the state that it leads to."""

    BORN = "born"
    EXITED = "exited"
    KILLED = "killed"
    LOST = "lost"


ENDED = frozenset({ProcessState.EXITED, ProcessState.KILLED, ProcessState.LOST})
_ALIVE = (ProcessState.STARTING, ProcessState.RUNNING)

TRANSITIONS = transitions_of(
    {
        ProcessEvent.BORN: {ProcessState.STARTING: ProcessState.RUNNING},
        # One that ended while the gateway was down was never seen running.
        ProcessEvent.EXITED: dict.fromkeys(_ALIVE, ProcessState.EXITED),
        ProcessEvent.KILLED: dict.fromkeys(_ALIVE, ProcessState.KILLED),
        ProcessEvent.LOST: dict.fromkeys(_ALIVE, ProcessState.LOST),
    }
)

MACHINE = Machine(
    name="process", begins=frozenset({ProcessState.STARTING}), transitions=TRANSITIONS
)
advance = MACHINE.advance


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """Which process it is. A pid alone is not an identity: pids come back."""

    boot_id: str
    pid: int
    start_ticks: int


def is_same(birth: Birth, seen: Birth | None) -> bool:
    """Whether the process seen under the pid is the one that was born there."""
    return seen is not None and seen == birth


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    process_id: ProcessId
    session_id: SessionId
    generation: Generation
    turn_id: TurnId
    call_id: CallId
    command: str
    workdir: str
    is_foreground: bool
    state: ProcessState
    birth: Birth | None
    exit_code: int | None
    reason: str | None
    """Why it ended."""
    started_ms: int
    ended_ms: int | None
    is_end_asked: bool
    exit_read_by: str | None
    """The call that showed the model how it ended."""
    turn_log_size: int | None
    """How long the log was when its turn was answered: matches below belong to that turn."""
    boundary: Boundary = Boundary.NONE
    """What keeps it inside."""
    agent: str = ""
    """The foreign agent that it is, or works for. Its end is no report: its turn says it."""
    node: str = ""
    """Where it runs."""
    home: str = ""
    """The home that has its files. Only a gateway of that home looks at it."""

    @property
    def is_outside(self) -> bool:
        """Whether nothing keeps it inside."""
        return self.boundary is Boundary.NONE

    @property
    def has_failed(self) -> bool:
        """Whether it ended in another way than by itself and well."""
        return self.ended_ms is not None and self.exit_code != 0


def how_ended(state: ProcessState, exit_code: int | None) -> str:
    """In a few words, how a process ended. Without an exit code, none was ever made for it."""
    if state is not ProcessState.EXITED:
        return str(state)
    return "did not start" if exit_code is None else f"exited with code {exit_code}"
