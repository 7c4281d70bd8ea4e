"""A connection that is watched: silence is asked about, and an unanswered question ends it.

A connection can be dead without an end: a machine that slept, a router that forgot it. So what is
not heard for a while is pinged, and without a sign within a bound the connection is given up. The
old one is closed before a new one is opened, so that a platform never has two of ours.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, TypeVar

from anyio import create_task_group, sleep

from koboshi.ports.clock import Clock

Connection = TypeVar("Connection")
PING: Final = "ping"
RENEW: Final = "renew"


class ConnectionSilent(Exception):
    """Nothing came within the bound, not even the answer to a ping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLimits:
    ping_after_s: float = 30.0
    """So long without a sign, and the platform is asked for one."""
    answer_within_s: float = 15.0
    """So long without the answer, and the connection is given up."""


def next_look(now: float, heard: float, pinged: float | None, limits: WatchLimits) -> str | float:
    """What to do about a connection: PING, RENEW, or wait for so many seconds. Pure.

    `heard` and `pinged` are when something last came and when it was last asked for."""
    if pinged is not None and pinged >= heard:
        left = pinged + limits.answer_within_s - now
        return RENEW if left <= 0 else left
    left = heard + limits.ping_after_s - now
    return PING if left <= 0 else left


class Watch:
    """When a connection was last heard."""

    def __init__(self, clock: Clock, limits: WatchLimits | None = None) -> None:
        self._clock = clock
        self._limits = limits or WatchLimits()
        self._heard = clock.monotonic()
        self._pinged: float | None = None
        self.heard_ms: int | None = None

    def hear(self) -> None:
        """Something came: any sign of life counts."""
        self._heard, self._pinged = self._clock.monotonic(), None
        self.heard_ms = self._clock.now_ms()

    def begin(self) -> None:
        """A new connection begins; it has its time to say something."""
        self._heard, self._pinged = self._clock.monotonic(), None

    async def keep(self, ping: Callable[[], Awaitable[None]]) -> None:
        """Watch until cancelled. Raises ConnectionSilent."""
        while True:
            now = self._clock.monotonic()
            look = next_look(now, self._heard, self._pinged, self._limits)
            if look == RENEW:
                silent_s = now - self._heard
                raise ConnectionSilent(f"nothing was heard for {silent_s:.0f} s")
            if look == PING:
                self._pinged = now
                await ping()
            elif isinstance(look, float):
                await sleep(look)


async def run_watched(
    opened: AbstractAsyncContextManager[Connection],
    use: Callable[[Connection], Awaitable[None]],
    ping: Callable[[Connection], Awaitable[None]],
    watch: Watch,
) -> None:
    """Use a connection until it ends, fails or falls silent. It is closed when this returns or
    raises, so the caller opens the next one only behind that."""
    watch.begin()
    async with opened as connection, create_task_group() as tasks:
        tasks.start_soon(watch.keep, lambda: ping(connection))
        await use(connection)
        tasks.cancel_scope.cancel()
