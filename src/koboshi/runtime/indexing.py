"""Keeping the words of conversations findable, behind the commits that store them."""

from dataclasses import dataclass

from anyio import sleep

from koboshi.ports.search import WordSearch
from koboshi.ports.wakeups import JOURNAL, Wakeups

AT_ONCE = 200
"""Steps of one transaction: it must not hold up a message for long."""
PAUSE_SECONDS = 0.05
"""Between two of them, for others to write."""
QUIET_SECONDS = 5.0
"""What is said in this time is indexed together."""
POLL_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexing:
    search: WordSearch
    wakeups: Wakeups

    async def keep_indexing(self) -> None:
        """Index what was said, until cancelled."""
        pause_s = QUIET_SECONDS
        while True:
            seen = self.wakeups.count(JOURNAL)
            await sleep(pause_s)
            is_behind = await self.search.index(AT_ONCE) == AT_ONCE
            pause_s = PAUSE_SECONDS if is_behind else QUIET_SECONDS
            if not is_behind:
                await self.wakeups.wait(JOURNAL, POLL_SECONDS, since=seen)
