"""Unowned turns to verdicts: at boot, and every now and then."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import structlog
from anyio import Event, create_task_group, sleep

from koboshi.domain import phrases
from koboshi.domain.boot import away_ms, boot_report, resumed_in
from koboshi.domain.ids import TurnId, WorkerId
from koboshi.domain.recovery import Verdict, VerdictKind
from koboshi.domain.standing import HELD_BACK
from koboshi.domain.worker import Breaker
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
    holds_back: bool = False
    """The boot breaker left turns as they were. One that was set aside is looked at until the
    breaker closes; no other look would bring it back before the next boot."""

    async def keep_rescuing(self) -> None:
        decided = await self.rescue(is_boot=True)
        await self._report(decided)
        self.has_looked.set()
        while True:
            await sleep(self.every_seconds)
            await self.rescue(is_boot=False)

    async def _report(self, decided: Sequence[tuple[TurnId, Verdict]]) -> None:
        """Report once what this boot found, and tell the person who asked for the restart."""
        status = await self.store.views.status()
        worker, previous = status.worker, status.previous
        if worker is None:
            return
        words = boot_report(worker, previous, decided, Breaker(status.breaker))
        back = phrases.back(away_ms(worker, previous) / 1000, resumed_in(decided))
        await self.store.workers.report(self.worker_id, words, back)
        log.info("boot_report", words=words)

    async def rescue(self, *, is_boot: bool) -> list[tuple[TurnId, Verdict]]:
        """Judge every turn without a worker, and end questions that got no answer in time. Returns
        the verdicts."""
        decided: list[tuple[TurnId, Verdict]] = []
        turns = await self.store.turns.unowned(with_suspended=is_boot or self.holds_back)
        left = iter(turns)
        # As many tasks as work at once: one for each of ten thousand turns would keep the event
        # loop from opening the channels.
        async with create_task_group() as tasks:
            for _ in range(min(self.at_once, len(turns))):
                tasks.start_soon(self._judge_each, left, decided)
        self.holds_back = any(verdict.rule == HELD_BACK for _, verdict in decided)
        while await self.store.turns.expire(EXPIRE_AT_ONCE) == EXPIRE_AT_ONCE:
            pass
        return decided

    async def _judge_each(
        self, left: Iterator[TurnId], decided: list[tuple[TurnId, Verdict]]
    ) -> None:
        """The next of those that are left, until none is."""
        for turn_id in left:
            verdict = await self.store.turns.recover(turn_id)
            if verdict is None:
                continue
            decided.append((turn_id, verdict))
            if verdict.kind is VerdictKind.STAND:
                continue
            say = log.error if verdict.rule == "contradiction" else log.info
            say("turn_recovered", turn=turn_id, verdict=verdict.kind, rule=verdict.rule)
