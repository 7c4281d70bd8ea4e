"""Hints that something may be there to do. They may be lost: polling is the truth."""

from typing import Protocol

TURNS = "turns"
OUTBOX = "outbox"
JOURNAL = "journal"


def claim_topic(turn_id: int) -> str:
    """Hinted when the claim on this turn may have been taken away."""
    return f"claim:{turn_id}"


class Wakeups(Protocol):
    def hint(self, topic: str) -> None:
        """Wake whoever waits for `topic`. Safe to call when nobody does."""
        ...

    async def wait(self, topic: str, at_most_s: float) -> None:
        """Return at the next hint, at once if one came since the last wait, or after the time."""
        ...
