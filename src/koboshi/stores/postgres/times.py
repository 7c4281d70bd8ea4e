"""The clock of the server, which is the clock of every node: what two nodes store can be compared.

It is asked for at the beginning of each batch, and goes on in between with the monotonic clock of
this machine. The wall clock of a node decides nothing.
"""

from typing import Protocol

from koboshi.ports.clock import Clock

QUICK_S = 0.1
"""Only an answer that came so soon tells what time it is."""


class StoreTime(Clock, Protocol):
    def told_ms(self) -> int | None:
        """What the server is told that the time is; None: it knows."""
        ...

    def measured(self, server_ms: int, begun: float) -> bool:
        """The server answered with its time to what was sent at `begun`, by the monotonic clock.
        Returns whether that is the time from now on."""
        ...


class ServerTime:
    """The time of the server as last measured, and what has passed since."""

    def __init__(self, clock: Clock, server_ms: int) -> None:
        self._clock = clock
        self._server_ms = server_ms
        self._at = clock.monotonic()

    def now_ms(self) -> int:
        return self._server_ms + round((self._clock.monotonic() - self._at) * 1_000)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def told_ms(self) -> int | None:
        return None

    def measured(self, server_ms: int, begun: float) -> bool:
        is_quick = self._clock.monotonic() - begun < QUICK_S
        if is_quick:
            self._server_ms, self._at = server_ms, begun
        return is_quick


class OwnTime:
    """The time of this process, which the server is told: for tests that move it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def told_ms(self) -> int | None:
        return self._clock.now_ms()

    def measured(self, server_ms: int, begun: float) -> bool:  # noqa: ARG002
        """The server knows what it was told."""
        return True
