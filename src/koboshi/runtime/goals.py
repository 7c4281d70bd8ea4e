"""Goals that are to be judged: claimed, shown to the model, and moved on by its verdict alone."""

from dataclasses import dataclass

import structlog
from anyio import create_task_group

from koboshi.agent.judge import judge_request
from koboshi.domain.errors import ModelBusy, ModelRefused, StoreFailed, is_or_holds
from koboshi.domain.goal import GoalClaim, read_judgement
from koboshi.domain.ids import WorkerId
from koboshi.ports.model import Model
from koboshi.ports.store import Store
from koboshi.ports.wakeups import GOALS, PROCESSES, Wakeups
from koboshi.runtime.drain import Drain

log = structlog.get_logger()

JUDGED_AT_ONCE = 4
WOKEN_AT_ONCE = 64
SOON_SECONDS = 0.02


@dataclass(slots=True, kw_only=True)
class GoalLoop:
    store: Store
    model: Model
    wakeups: Wakeups
    worker_id: WorkerId
    drain: Drain
    poll_seconds: float

    async def keep_judging(self) -> None:
        """Judge goals and wake those whose wait is over, until cancelled."""
        async with create_task_group() as tasks:
            tasks.start_soon(self._hear_processes)
            while True:
                seen = self.wakeups.count(GOALS)
                pause = await self.look()
                await self.wakeups.wait(GOALS, pause, since=seen)

    async def _hear_processes(self) -> None:
        """The end of a process may be what a goal waits for."""
        while True:
            seen = self.wakeups.count(PROCESSES)
            await self.wakeups.wait(PROCESSES, self.poll_seconds, since=seen)
            self.wakeups.hint(GOALS)

    async def look(self) -> float:
        """Judge what is to be judged now. Returns when the next look is worth it."""
        if self.drain.is_begun:
            return self.poll_seconds
        await self.store.goals.wake(WOKEN_AT_ONCE)
        due_in_ms = await self.store.goals.due_in_ms()
        while due_in_ms == 0:
            claims = await self.store.goals.claim(self.worker_id, JUDGED_AT_ONCE)
            async with create_task_group() as tasks:
                for claim in claims:
                    tasks.start_soon(self._judge, claim)
            if not claims:
                break
            due_in_ms = await self.store.goals.due_in_ms()
        if not due_in_ms:
            return self.poll_seconds
        return min(self.poll_seconds, max(due_in_ms / 1_000, SOON_SECONDS))

    async def _judge(self, claim: GoalClaim) -> None:
        try:
            await self._ask(claim)
        except Exception as error:  # a goal's bug must not take the gateway down
            if is_or_holds(error, StoreFailed):
                raise
            log.error("judge_broke", goal=claim.goal_id, exc_info=True)
            reason = "an error of mine; the log says more"
            await self.store.goals.unjudged(claim, reason, is_unreadable=False)

    async def _ask(self, claim: GoalClaim) -> None:
        case = await self.store.goals.load(claim)
        if case is None:
            return
        try:
            reply = await self.model.respond(judge_request(case))
        except (ModelBusy, ModelRefused) as trouble:
            log.warning("judge_silent", goal=claim.goal_id, reason=trouble.reason)
            await self.store.goals.unjudged(claim, trouble.reason, is_unreadable=False)
            return
        tokens = reply.tokens_in + reply.tokens_out
        judgement = read_judgement(reply.text)
        if judgement is None:
            log.warning("verdict_unreadable", goal=claim.goal_id)
            words = "the verdict could not be read"
            await self.store.goals.unjudged(claim, words, is_unreadable=True, tokens=tokens)
            return
        log.info("goal_judged", goal=claim.goal_id, verdict=judgement.verdict)
        await self.store.goals.judged(claim, judgement, tokens)
