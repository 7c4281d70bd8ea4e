"""Looking after the other nodes: one that gives no sign of life for a whole lease is buried, and
what it worked on is judged at once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog
from anyio import sleep

from koboshi.domain.burial import (
    OwnBeats,
    Sighting,
    dead_among,
    first_beat,
    looked_again,
    seconds_to_next,
)
from koboshi.domain.ids import WorkerId
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store

log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class Burying:
    store: Store
    clock: Clock
    worker_id: WorkerId
    lease_seconds: float
    look_seconds: float
    rescue: Callable[[], Awaitable[object]]
    """Judges what workers that are gone have left."""
    on_buried: Callable[[int], None] = lambda _: None
    """Told how many workers were just buried."""
    buried: int = 0
    _seen: dict[WorkerId, Sighting] = field(default_factory=dict)
    _beats: OwnBeats | None = None

    async def keep_looking(self) -> None:
        while True:
            await self.look()
            now_s = self.clock.monotonic()
            await sleep(seconds_to_next(self._seen, now_s, self.lease_seconds, self.look_seconds))

    def has_beaten(self) -> None:
        """This node gave a sign of life, which the server took."""
        server_ms, now_s = self.store.workers.beaten_ms, self.clock.monotonic()
        if self._beats is None:
            self._beats = first_beat(server_ms, now_s)
        else:
            self._beats = self._beats.after_beat(server_ms, now_s, self.lease_seconds)

    async def look(self) -> None:
        signs = await self.store.workers.others(self.worker_id)
        now_s = self.clock.monotonic()
        self._seen = looked_again(self._seen, signs, now_s)
        if self._beats is None or not self._beats.may_bury(now_s, self.lease_seconds):
            return
        buried = 0
        for sign in dead_among(self._seen, now_s, self.lease_seconds):
            if await self.store.workers.bury(sign):
                log.warning("worker_buried", worker=sign.worker_id, node=sign.node)
                buried += 1
        if buried:
            self.buried += buried
            self.on_buried(buried)
            await self.rescue()
