"""The sign of life of this boot, and how fresh it is."""

from collections.abc import Callable
from dataclasses import dataclass

from anyio import Event

from koboshi.domain.ids import WorkerId
from koboshi.domain.worker import MemoryKills
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.ports.wakeups import WORKERS, Wakeups


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

    async def keep_beating(self) -> None:
        """Beat through the writer, so that a stuck disk is seen as what it is. Learns of a restart
        that somebody asked for."""
        while True:
            seen = self.wakeups.count(WORKERS)
            if await self.store.workers.beat(self.worker_id, self.count_kills()):
                self.restart_asked.set()
            self.last_beat = self.clock.monotonic()
            await self.wakeups.wait(WORKERS, self.every_seconds, since=seen)

    def age_seconds(self) -> float:
        return self.clock.monotonic() - self.last_beat
