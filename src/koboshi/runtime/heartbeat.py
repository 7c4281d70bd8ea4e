"""The sign of life of this boot, and how fresh it is."""

from collections.abc import Callable
from dataclasses import dataclass

from anyio import Event

from koboshi.domain.ids import WorkerId
from koboshi.domain.worker import MemoryKills
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.ports.wakeups import WORKERS, Wakeups

THAW_SECONDS = 15.0


@dataclass(slots=True, kw_only=True)
class Heartbeat:
    store: Store
    clock: Clock
    worker_id: WorkerId
    every_seconds: float
    wakeups: Wakeups
    restart_asked: Event
    count_kills: Callable[[], MemoryKills] = MemoryKills
    """What the kernel tells of processes that it killed for want of memory."""
    last_beat: float = 0.0
    lag_seconds: float = 0.0
    """How late the event loop came back to us, the last time that nobody woke us before."""
    thaws: int = 0
    """How often the wall clock went on while our own stood still: the machine slept."""
    _slept: float | None = None

    async def keep_beating(self) -> None:
        """Beat through the writer, so that a stuck disk is seen as what it is. Learns of a restart
        that somebody asked for."""
        while True:
            seen = self.wakeups.count(WORKERS)
            if await self.store.workers.beat(self.worker_id, self.count_kills()):
                self.restart_asked.set()
            self.last_beat = self.clock.monotonic()
            self._notice_thaw()
            await self.wakeups.wait(WORKERS, self.every_seconds, since=seen)
            late = self.clock.monotonic() - self.last_beat - self.every_seconds
            if late >= 0:
                self.lag_seconds = late

    def _notice_thaw(self) -> None:
        """The two clocks part when the machine is suspended, or somebody sets one forward."""
        apart = self.clock.now_ms() / 1000 - self.clock.monotonic()
        if self._slept is not None and apart - self._slept > THAW_SECONDS:
            self.thaws += 1
        self._slept = apart

    def age_seconds(self) -> float:
        return self.clock.monotonic() - self.last_beat
