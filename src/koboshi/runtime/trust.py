"""How long this gateway may trust that its claims are its own.

Theory of operation. Other nodes bury a worker that gives no sign of life for a whole lease. A
worker that was stopped, or cut off from the database, cannot know of its burial. So it stops by
itself before that: it trusts each beat for a part of the lease, counted from before the beat was
sent, by a clock that goes on while the machine sleeps. Past that, nothing begins: no tool, no send,
no program, no question to a platform. The turns are cancelled without a word to the database.

A beat in time restores the trust, because the row has no end: no other node has taken anything.
Then the turns that were cancelled are released, and sends that no task waits for count as unknown.
Both would stay as they are otherwise, under a worker that lives.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog
from anyio import Event, move_on_after, sleep

log = structlog.get_logger()

LOOK_SECONDS_MIN = 0.02


def _never() -> float:
    return 0.0


@dataclass(slots=True, kw_only=True)
class Trust:
    seconds: float | None = None
    """After a beat; None: the home has its store alone, and no other can bury us."""
    now: Callable[[], float] = _never
    """Seconds that go on while the machine sleeps."""
    losses: int = 0
    _until: float = 0.0
    _renewed: Event = field(default_factory=Event)

    @property
    def is_held(self) -> bool:
        return self.seconds is None or self.now() < self._until

    def renew(self, begun: float) -> None:
        """A beat was stored that was sent at `begun` or later."""
        if self.seconds is not None:
            self._until = max(self._until, begun + self.seconds)
            self._renewed.set()
            self._renewed = Event()

    async def wait(self) -> None:
        """Return while it is held."""
        while not self.is_held:
            await self._renewed.wait()

    async def keep_watching(
        self, on_lost: Callable[[], None], on_back: Callable[[], Awaitable[None]]
    ) -> None:
        """Tell of each end of the trust, and of its return."""
        while True:
            await self._wait_for_end()
            self.losses += 1
            log.warning("trust_lost", why="no beat was stored for too long; nothing begins")
            on_lost()
            await self.wait()
            log.warning("trust_back")
            await on_back()

    async def _wait_for_end(self) -> None:
        while self.is_held:
            if self.seconds is None:
                await sleep(3_600)
                continue
            renewed = self._renewed
            with move_on_after(max(LOOK_SECONDS_MIN, self._until - self.now())):
                await renewed.wait()
