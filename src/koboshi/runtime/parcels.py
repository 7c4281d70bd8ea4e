"""Copies of files for people: kept until nobody is owed them any more, or can fetch them."""

from dataclasses import dataclass
from pathlib import Path

import structlog
from anyio import sleep, to_thread

from koboshi.domain.files import SENT
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store

log = structlog.get_logger()

SWEEP_SECONDS = 3_600.0
KEEP_MS = 7 * 86_400_000
"""A copy whose call has not ended yet is owed to nobody, and is not to be taken away. One that
could not be delivered can be sent again for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcels:
    store: Store
    clock: Clock
    home: Path

    async def keep_sweeping(self) -> None:
        """Now and every hour, until cancelled."""
        while True:
            await self.sweep()
            await sleep(SWEEP_SECONDS)

    async def sweep(self) -> None:
        kept = await self.store.outbox.files_kept()
        before_ms = self.clock.now_ms() - KEEP_MS
        gone = await to_thread.run_sync(_remove, self.home, kept, before_ms)
        if gone:
            log.info("sent_files_removed", count=gone)


def _remove(home: Path, kept: frozenset[str], before_ms: int) -> int:
    """Take away what is old and of no use any more. Returns how many that were."""
    count = 0
    for path in (home / SENT).glob("*"):
        is_kept = f"{SENT}/{path.name}" in kept
        if not is_kept and path.stat().st_mtime_ns // 1_000_000 < before_ms:
            path.unlink(missing_ok=True)
            count += 1
    return count
