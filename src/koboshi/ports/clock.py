"""The only way to know the time."""

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970. May jump; only freshness and displayed times rest on it."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for waits and time limits."""
        ...
