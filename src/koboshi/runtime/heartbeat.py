"""The sign of life of this boot, and how fresh it is."""

from collections.abc import Callable
from dataclasses import dataclass, field

from anyio import Event

from koboshi.domain.ids import WorkerId
from koboshi.domain.worker import MemoryKills
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.ports.wakeups import WORKERS, Wakeups
from koboshi.runtime.trust import Trust

THAW_SECONDS = 15.0


@dataclass(slots=True)
class SuspendDetector:
    """How often the wall clock advanced while our own clock stood still: the machine slept, or the
    clock was set forward."""

    count: int = 0
    _apart: float | None = None

    def look(self, clock: Clock) -> None:
        """Compare the two clocks with how far apart they were before."""
        apart = clock.now_ms() / 1000 - clock.monotonic()
        if self._apart is not None and apart - self._apart > THAW_SECONDS:
            self.count += 1
        self._apart = apart


@dataclass(slots=True, kw_only=True)
class Heartbeat:
    store: Store
    clock: Clock
    worker_id: WorkerId
    every_seconds: float
    wakeups: Wakeups
    restart_asked: Event
    count_kills: Callable[[], MemoryKills] = MemoryKills
    """The kernel's count of processes killed for lack of memory."""
    last_beat: float = 0.0
    lag_seconds: float = 0.0
    """How late the event loop resumed us after the last wait that no hint cut short."""
    suspends: SuspendDetector = field(default_factory=SuspendDetector)
    trust: Trust = field(default_factory=Trust)
    on_beat: Callable[[], None] = lambda: None
    """Called when a beat is stored."""

    async def keep_beating(self) -> None:
        """Beat through the writer, so that a stuck disk shows as what it is. Learns of a requested
        restart."""
        while True:
            seen = self.wakeups.count(WORKERS)
            begun = self.trust.now()
            if await self.store.workers.beat(self.worker_id, self.count_kills()):
                self.restart_asked.set()
            self.trust.renew(begun)
            self.on_beat()
            self.last_beat = self.clock.monotonic()
            self.suspends.look(self.clock)
            await self.wakeups.wait(WORKERS, self.every_seconds, since=seen)
            late = self.clock.monotonic() - self.last_beat - self.every_seconds
            if late >= 0:
                self.lag_seconds = late

    def age_seconds(self) -> float:
        return self.clock.monotonic() - self.last_beat
