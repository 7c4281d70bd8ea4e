"""Hints that there may be work. They may be lost: polling is the truth."""

from typing import Protocol

TURNS = "turns"
OUTBOX = "outbox"
OUTBOX_SOONER = "outbox-sooner"
"""Hinted beside `OUTBOX` when a delivery that waited for a time may be due earlier."""
JOURNAL = "journal"
PROCESSES = "processes"
WORKERS = "workers"
ERASURES = "erasures"
SCHEDULES = "schedules"
GOALS = "goals"
ACCOUNTS = "accounts"
MEMORY = "memory"
"""A memory changed, so its files are behind."""


def claim_topic(turn_id: int) -> str:
    """Hinted when the claim on this turn may have been lost."""
    return f"claim:{turn_id}"


class Wakeups(Protocol):
    def hint(self, topic: str) -> None:
        """Wake the waiters for `topic`. Safe to call when there are none."""
        ...

    def hint_all(self) -> None:
        """Wake all waiters: it is not known what has happened."""
        ...

    def count(self, topic: str) -> int:
        """How many hints there were. Taken before looking, it tells `wait` what was missed."""
        ...

    async def wait(self, topic: str, at_most_s: float, since: int | None = None) -> None:
        """Return at the next hint, at once if one came after `since`, or after the time."""
        ...

    def forget(self, topic: str) -> None:
        """Nothing will wait for this topic again."""
        ...
