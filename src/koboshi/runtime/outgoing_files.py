"""Copies of files for people: kept while one is owed or can be fetched."""

from dataclasses import dataclass
from pathlib import Path

import structlog
from anyio import sleep, to_thread

from koboshi.domain.files import SENT
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store

log = structlog.get_logger()

SWEEP_SECONDS = 3_600.0
KEEP_MS = 7 * 86_400_000
"""The copy of a running call is not owed yet and must not be removed. An undelivered copy can be
sent again for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcels:
    store: Store
    clock: Clock
    home: Path

    async def keep_sweeping(self) -> None:
        """Now and every hour, until cancelled. An error with files waits for the next round: a
        failed cleanup never ends the gateway."""
        while True:
            try:
                await self.sweep()
            except (OSError, RuntimeError) as error:
                if isinstance(error, RuntimeError) and shortage_in(error) is None:
                    raise
                log.warning("sweep_failed", folder=SENT, error=str(error))
            await sleep(SWEEP_SECONDS)

    async def sweep(self) -> None:
        kept = await self.store.outbox.files_kept()
        before_ms = self.clock.now_ms() - KEEP_MS
        await self.store.files.sweep(before_ms, kept)
        gone, left = await to_thread.run_sync(_remove, self.home, kept, before_ms)
        if gone:
            log.info("sent_files_removed", count=gone)
        if left:
            log.warning("sent_files_kept", count=len(left), first=left[0])


def _remove(home: Path, kept: frozenset[str], before_ms: int) -> tuple[int, list[str]]:
    """Remove old copies of no use. Returns how many were removed, and why others were not: one
    failure never keeps the rest."""
    count, left = 0, []
    for path in (home / SENT).glob("*"):
        try:
            # The link itself, not what it points to: that may be gone.
            is_old = path.lstat().st_mtime_ns // 1_000_000 < before_ms
            if is_old and f"{SENT}/{path.name}" not in kept:
                path.unlink(missing_ok=True)
                count += 1
        except OSError as error:
            left.append(str(error))
    return count, left
