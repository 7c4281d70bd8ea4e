"""How the models of the chain and the budget are, for people who look. It decides nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from anyio import sleep

from koboshi.control.neighbours import Neighbour
from koboshi.domain.budget import BudgetScope, Purse, used_words
from koboshi.domain.chain import Bench, bench_words
from koboshi.ports.budget import Budget
from koboshi.ports.clock import Clock
from koboshi.ports.models import Models

LOOK_SECONDS = 5.0
TOLD_MAX = 5


@dataclass(slots=True, kw_only=True)
class ChainLook:
    models: Models
    clock: Clock
    names: tuple[str, ...]
    """In the order of the chain."""
    budget: Budget
    has_budget: bool = False
    benches: tuple[Bench, ...] = ()
    purses: tuple[Purse, ...] = ()

    async def keep_looking(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self.benches = await self.models.benches()
            if self.has_budget:
                self.purses = await self.budget.today()
            await sleep(LOOK_SECONDS)

    def told(self) -> tuple[Neighbour, ...]:
        """Each model of a chain, whether it is asked now, and why not; and the budget of today."""
        chain = self.names if len(self.names) > 1 else ()
        return (*(self._of(name) for name in chain), *self._budget())

    def _budget(self) -> Iterator[Neighbour]:
        if not self.has_budget:
            return
        full = [each for each in self.purses if each.used + each.reserved >= each.limit]
        whole = [each for each in self.purses if each.scope is BudgetScope.ALL]
        nearest = sorted(self.purses, key=lambda each: each.limit - each.used - each.reserved)
        shown = full or whole or nearest[:1]
        told = [f"{used_words(each)} ({each.subject or 'all'})" for each in shown]
        yield ("budget", not full, "; ".join(told[:TOLD_MAX]) or "nothing was used today")

    def _of(self, name: str) -> Neighbour:
        now_ms = self.clock.now_ms()
        benches = [each for each in self.benches if each.model == name and each.until_ms > now_ms]
        if not benches:
            return (f"model:{name}", True, "in the chain")
        return (f"model:{name}", False, "; ".join(bench_words(each, now_ms) for each in benches))
