"""Due times to turns: one timer for the nearest one. Hints and the timer may be late or lost;
looking is the truth."""

from dataclasses import dataclass

import structlog

from koboshi.ports.store import Store
from koboshi.ports.wakeups import SCHEDULES, Wakeups
from koboshi.runtime.drain import Drain

log = structlog.get_logger()

FIRED_AT_ONCE = 64
RECKONED_AT_ONCE = 256
SOON_SECONDS = 0.02


@dataclass(slots=True, kw_only=True)
class ScheduleLoop:
    store: Store
    wakeups: Wakeups
    drain: Drain
    poll_seconds: float

    async def keep_firing(self) -> None:
        """Fire what is due until cancelled."""
        await self.store.schedules.begin()
        while True:
            seen = self.wakeups.count(SCHEDULES)
            pause = await self.look()
            await self.wakeups.wait(SCHEDULES, pause, since=seen)

    async def look(self) -> float:
        """Fire what is due now. Returns after how many seconds the next look is worth it."""
        if self.drain.is_begun:
            return self.poll_seconds
        while await self.store.schedules.reckon(RECKONED_AT_ONCE):
            pass
        due_in_ms = await self.store.schedules.due_in_ms()
        while due_in_ms == 0:
            fired = await self.store.schedules.fire(FIRED_AT_ONCE)
            for schedule_id, rule in fired.decided:
                log.info("schedule_fired", schedule=schedule_id, rule=rule)
            if fired.stood or not fired.decided:
                return self.poll_seconds
            due_in_ms = await self.store.schedules.due_in_ms()
        if due_in_ms is None:
            return self.poll_seconds
        return min(self.poll_seconds, max(due_in_ms / 1_000, SOON_SECONDS))
