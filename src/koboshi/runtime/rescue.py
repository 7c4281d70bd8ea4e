"""Unowned turns to verdicts: at boot, and every now and then."""

from dataclasses import dataclass

import structlog
from anyio import CapacityLimiter, Event, create_task_group, sleep

from koboshi.domain.ids import TurnId, WorkerId
from koboshi.ports.store import Store

log = structlog.get_logger()

EXPIRE_AT_ONCE = 100


@dataclass(slots=True, kw_only=True)
class Rescue:
    store: Store
    worker_id: WorkerId
    at_once: int
    every_seconds: float
    has_looked: Event
    """Set when every turn that the last boot left behind has its verdict."""

    async def keep_rescuing(self) -> None:
        await self.rescue(is_boot=True)
        self.has_looked.set()
        while True:
            await sleep(self.every_seconds)
            await self.rescue(is_boot=False)

    async def rescue(self, *, is_boot: bool) -> None:
        """Judge every turn that nobody works on, and end questions that nobody answered."""
        turns = await self.store.turns.unowned(self.worker_id, with_suspended=is_boot)
        limiter = CapacityLimiter(self.at_once)
        async with create_task_group() as tasks:
            for turn_id in turns:
                tasks.start_soon(self._judge, limiter, turn_id)
        while await self.store.turns.expire(EXPIRE_AT_ONCE) == EXPIRE_AT_ONCE:
            pass

    async def _judge(self, limiter: CapacityLimiter, turn_id: TurnId) -> None:
        async with limiter:
            verdict = await self.store.turns.recover(turn_id, self.worker_id)
        if verdict is None:
            return
        say = log.error if verdict.rule == "contradiction" else log.info
        say("turn_recovered", turn=turn_id, verdict=verdict.kind, rule=verdict.rule)
