"""Once a minute: what this minute was like, for the charts of the page."""

import resource
from dataclasses import dataclass, field
from pathlib import Path

from anyio import sleep, to_thread

from koboshi.ports.minutes import Minutes
from koboshi.runtime.meter import Meter

MINUTE_SECONDS = 60.0
TOKENS = "koboshi_llm_tokens_total"


@dataclass(slots=True, kw_only=True)
class NoteMinutes:
    minutes: Minutes
    meter: Meter
    database: Path
    model: str
    _told: int = field(default=0)
    """Tokens that are noted already."""

    async def keep_noting(self) -> None:
        """Every minute, until cancelled. A start has better things to write."""
        while True:
            await sleep(MINUTE_SECONDS)
            await self.note()

    async def note(self) -> None:
        memory_bytes, store_bytes = await to_thread.run_sync(self._measure)
        used = round(sum(self.meter.counts[TOKENS].values()))
        tokens = {self.model: used - self._told} if used > self._told else {}
        await self.minutes.note(tokens=tokens, memory_bytes=memory_bytes, store_bytes=store_bytes)
        self._told = used

    def _measure(self) -> tuple[int | None, int | None]:
        files = (self.database, self.database.with_name(f"{self.database.name}-wal"))
        sizes = [size for size in map(_size, files) if size is not None]
        return _memory(), sum(sizes) if sizes else None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _memory() -> int | None:
    """What this process has in memory; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize()
