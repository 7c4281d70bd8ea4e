"""Once a minute: what this minute was like, for the charts of the page."""

import resource
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anyio import sleep, to_thread

from koboshi.domain.price import Price
from koboshi.ports.minutes import Minutes
from koboshi.runtime.meter import Meter

MINUTE_SECONDS = 60.0
TOKENS = "koboshi_llm_tokens_total"


@dataclass(slots=True, kw_only=True)
class NoteMinutes:
    minutes: Minutes
    meter: Meter
    database: Path
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By model. Of one that has none, no cost is estimated."""
    _told: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Tokens in and out by model, as they are noted already."""

    async def keep_noting(self) -> None:
        """Every minute, until cancelled. A start has better things to write."""
        while True:
            await sleep(MINUTE_SECONDS)
            await self.note()

    async def note(self) -> None:
        memory_bytes, store_bytes = await to_thread.run_sync(self._measure)
        counted = self._counted()
        used = {model: self._since(model, *count) for model, count in counted.items()}
        await self.minutes.note(
            tokens={model: sum(count) for model, count in used.items() if sum(count)},
            memory_bytes=memory_bytes,
            store_bytes=store_bytes,
            costs={
                model: price.cost_of(*used[model])
                for model, price in self.prices.items()
                if model in used
            },
        )
        self._told = counted

    def _counted(self) -> dict[str, tuple[int, int]]:
        """Tokens in and out by model, of this boot."""
        found: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for labels, count in self.meter.counts[TOKENS].items():
            named = dict(labels)
            model = ":".join(filter(None, (named["provider"], named["model"])))
            found[model][named["direction"]] = count
        return {
            model: (round(each.get("in", 0)), round(each.get("out", 0)))
            for model, each in found.items()
        }

    def _since(self, model: str, tokens_in: int, tokens_out: int) -> tuple[int, int]:
        told_in, told_out = self._told.get(model, (0, 0))
        return tokens_in - told_in, tokens_out - told_out

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
