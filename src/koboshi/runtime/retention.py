"""Forgetting rows older than the configured age, while there is little traffic."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
from anyio import sleep

from koboshi.domain.ids import WorkerId
from koboshi.ports.clock import Clock
from koboshi.ports.retention import Outdated
from koboshi.ports.store import Store

log = structlog.get_logger()

DAY_MS = 86_400_000
FIRST_SECONDS = 180.0
"""A start has more urgent work, but a gateway that often starts must forget, too."""
EVERY_SECONDS = 6 * 3_600.0
PAUSE_SECONDS = 0.1
"""Between two batches, so that no commit waits for more than one of them."""
BUSY_COMMITS = 5
"""So many other commits within a pause are traffic: traffic goes first."""
BUSY_PAUSES_MAX = 300
AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    store: Store
    clock: Clock
    worker_id: WorkerId
    journal_days: int
    """Zero is for ever."""
    deliveries_days: int
    """Zero is for ever. They are kept at least as long as the journal."""
    occasions_days: int = 90
    """What became of due times; zero is for ever."""

    async def keep_forgetting(self) -> None:
        """A while after the start and every few hours, until cancelled."""
        pause_seconds = FIRST_SECONDS
        while True:
            await sleep(pause_seconds)
            pause_seconds = EVERY_SECONDS
            await self.forget()

    async def forget(self) -> tuple[int, int]:
        """Once through everything. Returns how many lines and deliveries are gone."""
        retention, lines, deliveries = self.store.retention, 0, 0
        if not self.journal_days:
            return lines, deliveries
        lines_ms = self.clock.now_ms() - self.journal_days * DAY_MS
        boot_seq = await retention.begin(self.worker_id)
        lines = await self._sweep(
            lambda after: retention.lines(after, lines_ms, boot_seq), retention.forget_lines
        )
        if self.deliveries_days:
            # A line shows the words of its delivery, so these stay at least as long.
            days = max(self.deliveries_days, self.journal_days)
            before_ms = self.clock.now_ms() - days * DAY_MS
            deliveries = await self._sweep(
                lambda after: retention.deliveries(after, before_ms), retention.forget_deliveries
            )
        occasions = await self._forget_occasions()
        await self._forget_shown(lines_ms)
        if lines or deliveries or occasions:
            counts = {"journal": lines, "deliveries": deliveries, "occasions": occasions}
            log.info("old_rows_forgotten", **counts)
        return lines, deliveries

    async def _forget_occasions(self) -> int:
        if not self.occasions_days:
            return 0
        before_ms, place, count = self.clock.now_ms() - self.occasions_days * DAY_MS, 0, 0
        while found := await self.store.schedules.old(place, before_ms, AT_ONCE):
            for schedule_id in found:
                await self._let_others_go_first()
                count += await self.store.schedules.forget(schedule_id, before_ms)
            place = found[-1]
        return count

    async def _forget_shown(self, before_ms: int) -> None:
        """What turns were shown of memories, as long ago as the lines of the journal."""
        count = AT_ONCE
        while count == AT_ONCE:
            await self._let_others_go_first()
            count = await self.store.memory.forget(before_ms, AT_ONCE)

    async def _sweep(
        self,
        look: Callable[[int], Awaitable[Outdated]],
        forget: Callable[[tuple[int, ...]], Awaitable[int]],
    ) -> int:
        count, place = 0, 0
        while True:
            found = await look(place)
            if found.ids:
                await self._let_others_go_first()
                count += await forget(found.ids)
            if found.place is None:
                return count
            place = found.place

    async def _let_others_go_first(self) -> None:
        """One pause at least, and more while other commits come or the disk is full."""
        for _ in range(BUSY_PAUSES_MAX):
            before = self.store.commits
            await sleep(PAUSE_SECONDS)
            is_busy = self.store.commits - before > BUSY_COMMITS
            if not is_busy and self.store.trouble is None:
                return
