"""Whether an agent may begin: as many live as may, or the budget of the day is used."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from anyio import Lock, sleep

from koboshi.domain import agent_words
from koboshi.domain.budget import OverBudget
from koboshi.domain.errors import Fenced
from koboshi.domain.process import Process
from koboshi.domain.turn import Claim
from koboshi.ports.store import Store
from koboshi.ports.tool import TurnSetDown
from koboshi.runtime.billing import Billing

CHARS_OF_TOKEN = 4


@dataclass(slots=True, kw_only=True)
class AgentRoom:
    """How many agents may live at once in this home. It has one gateway, so what is counted and
    begun without another in between is right."""

    store: Store
    agents_max: int
    look_seconds: float
    _beginning: Lock = field(default_factory=Lock)

    async def begin(
        self,
        claim: Claim,
        agent: str,
        begin: Callable[[], Awaitable[Process]],
        is_over: Callable[[], bool],
    ) -> Process:
        """Begin a process when fewer agents live than may. An idle one is ended for it; where there
        is none, the person hears why it waits. Raises TurnSetDown when the gateway leaves."""
        is_told = False
        while True:
            async with self._beginning:
                running = await self.store.agents.running()
                if running < self.agents_max:
                    return await begin()
            if is_over():
                raise TurnSetDown
            if not await self._end_idle() and not is_told:
                await _tell(self.store, claim, agent, running)
                is_told = True
            await sleep(self.look_seconds)

    async def _end_idle(self) -> bool:
        """End the agent that has had nothing to do for longest. False if there is none."""
        idle = [
            each
            for each in await self.store.agents.living()
            if each.busy_with is None and not each.has_open_turn and not each.is_end_asked
        ]
        if idle:
            await self.store.agents.end(min(idle, key=lambda each: each.used_ms).process_id)
        return bool(idle)


async def _tell(store: Store, claim: Claim, agent: str, running: int) -> None:
    """Once in a turn, over all lives of the gateway: the first notice of a turn is stored."""
    if (await store.turns.progress(claim)).told is None:
        words = agent_words.waits_for_room(agent, running)
        await store.turns.tell_progress(claim, 1, words)


async def check_budget(
    store: Store, billing: Billing | None, claim: Claim, agent: str, text: str
) -> None:
    """See whether the budget leaves room for a turn. What the agent uses is known when it is over.
    Raises Fenced when the turn has to wait."""
    if billing is None:
        return
    tokens_in = len(text) // CHARS_OF_TOKEN
    try:
        bill = await billing.reserve(claim.session_id, claim.turn_id, agent, tokens_in)
    except OverBudget as over:
        await store.budget.hold(claim, over.wait_ms, over.words)
        raise Fenced("the budget of the day is used") from over
    # A reservation ends with its gateway, and the agent does not: what it used counts at its end.
    await store.budget.settle(bill, 0)
