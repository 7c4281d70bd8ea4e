"""The minutes of a gateway: counted from the journal, for people who look at charts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteView:
    """What a minute was like. Times are None where no turn was answered in it."""

    minute: int
    """Since 1970."""
    messages: int
    errors: int
    latency_p50_ms: int | None
    latency_p95_ms: int | None
    tokens: tuple[tuple[str, int], ...] = ()
    """By model."""
    costs: tuple[tuple[str, int], ...] = ()
    """By model, in millionths of a dollar: an estimate, of models whose price was known."""
    heard: tuple[tuple[str, int], ...] = ()
    """Channels with messages, and when each had the last one."""
    memory_bytes: int | None = None
    store_bytes: int | None = None


class Minutes(Protocol):
    async def note(
        self,
        *,
        tokens: Mapping[str, int],
        memory_bytes: int | None,
        store_bytes: int | None,
        costs: Mapping[str, int] | None = None,
    ) -> None:
        """Count the lines of the journal since the last note into their minutes, and store what was
        measured with the present one. A crash neither loses nor doubles a line."""
        ...
