"""One boot of one gateway process."""

from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.ids import WorkerId


class EndedHow(StrEnum):
    STOPPED = "stopped"  # as asked, with nothing left behind
    LEFTOVERS = "leftovers"  # as asked, turns were released
    RESTART = "restart"  # asked to come back
    KILLED = "killed"  # found dead by its successor


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


def is_alive(worker: Worker, *, now_ms: int, ttl_ms: int) -> bool:
    """Whether the worker is to be taken for alive, where only its heartbeat can tell."""
    return worker.ended_ms is None and now_ms - worker.heartbeat_ms <= ttl_ms


def trusted_until(beat_started: float, *, ttl_s: float, margin_s: float) -> float:
    """Until when, on the monotonic clock, a worker may trust its own claims after a heartbeat that
    it began to send at `beat_started`."""
    return beat_started + ttl_s - margin_s
