"""One boot of one gateway process."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.ids import WorkerId


class EndedHow(StrEnum):
    STOPPED = "stopped"  # as asked, with nothing left behind
    LEFTOVERS = "leftovers"  # as asked, turns were released
    RESTART = "restart"  # asked to come back
    KILLED = "killed"  # found dead by its successor
    MEMORY = "memory"  # found dead, and the kernel did kill because memory ran out at that time
    REBOOTED = "rebooted"  # found dead, and the machine was started again since
    REFUSED = "refused"  # could not start as it was configured; it served no message


MEMORY_MS_MAX = 120_000
"""A kill that was counted longer than this after the last sign of life may be another process's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryKills:
    """How many processes the kernel killed because memory ran out; None where it does not tell."""

    group: str | None = None
    """Which group of processes we are in; the count of another one says nothing."""
    in_group: int | None = None
    on_machine: int | None = None


NO_KILLS = MemoryKills()
"""Nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    worker_id: WorkerId
    host: str
    pid: int
    birth: str
    version: str
    started_ms: int
    heartbeat_ms: int
    is_draining: bool
    ended_ms: int | None
    ended_how: EndedHow | None
    restart_by: str | None = None
    """Who asked it to come back: `entry:<id>` a command, `call:<turn>/<call>` the agent."""
    found_dead: int = 0
    """Turns that were running under a worker that is gone when it started."""
    report: str | None = None
    """What it found at its start and decided, in words."""
    node: str = ""
    home: str = ""


class Breaker(StrEnum):
    """How much of what was interrupted a boot takes up again."""

    CLOSED = "closed"  # everything
    HALF = "half"  # only what does not die each time it is tried
    OPEN = "open"  # nothing


WAIT_MS_MAX = 600_000
"""No turn waits for longer in the queue: neither for the breaker nor for a model."""
BREAKER_MS = WAIT_MS_MAX
HALF_BOOTS = 3
OPEN_BOOTS = 5


def breaker_of(unclean_ms: Sequence[int], now_ms: int) -> tuple[Breaker, int]:
    """What the breaker says, and until when, from the times of the newest boots that found a turn
    dead under a claim, newest first. Ten quiet minutes close it. Times that are still to come are
    of a clock that was set back since, and say nothing."""
    known = [each for each in unclean_ms if each <= now_ms]
    if not known or now_ms - known[0] >= BREAKER_MS:
        return Breaker.CLOSED, 0
    near = sum(known[0] - each < BREAKER_MS for each in known)
    until_ms = known[0] + BREAKER_MS
    if near >= OPEN_BOOTS:
        return Breaker.OPEN, until_ms
    return (Breaker.HALF, until_ms) if near >= HALF_BOOTS else (Breaker.CLOSED, 0)
