"""Every billed call: its estimate is reserved before it is made, and settled by its reply.

A kill in between leaves the reservation, and the next call counts it as spent. Any call can be
billed: `reserve`, then the call, then `settle` or `fail`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from anyio import to_thread

from koboshi.domain.budget import Bill, BudgetUnit, OverBudget, amount_of
from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.domain.ids import SessionId, TurnId
from koboshi.domain.price import Price
from koboshi.domain.trouble import ModelTrouble
from koboshi.ports.budget import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Billing:
    budget: Budget
    unit: BudgetUnit
    price_of: Callable[[str], Price | None]
    """What a model costs, by its name at its provider."""
    unpriced: Price
    """What a model without a price is counted as."""
    reply_tokens: int
    """How long a reply is reckoned to be before it is there, and the longest that it may be."""
    on_refused: Callable[[str], None] = lambda _model: None
    """Told of each call that is not made."""

    async def reserve(
        self, session_id: SessionId, turn_id: TurnId, model: str, tokens_in: int
    ) -> Bill:
        """Before the call. Raises OverBudget, and then the call is not made."""
        if self.unit is BudgetUnit.MONEY:
            await to_thread.run_sync(self.price_of, model)  # it may load a library
        amount = self.amount(model, tokens_in * 5 // 4, self.reply_tokens)
        return await self.reserve_amount(session_id, turn_id, model, amount)

    async def reserve_amount(
        self, session_id: SessionId, turn_id: TurnId, model: str, amount: int
    ) -> Bill:
        """Likewise, for a call that is not reckoned by its tokens."""
        answer = await self.budget.reserve(session_id, turn_id, model, amount)
        if isinstance(answer, OverBudget):
            self.on_refused(model)
            raise answer
        return answer

    async def settle(self, bill: Bill, model: str, tokens_in: int, tokens_out: int) -> None:
        """After the reply. One that tells no tokens costs what was reckoned."""
        is_told = tokens_in + tokens_out > 0
        paid = self.amount(model, tokens_in, tokens_out) if is_told else None
        await self.budget.settle(bill, paid)

    async def fail(self, bill: Bill, error: ModelBusy | ModelRefused | None) -> None:
        """After a call without a reply. What a provider refused costs nothing; what broke off, or
        was stopped, may have cost all of it."""
        is_free = error is not None and error.trouble is not ModelTrouble.FAILED
        await self.budget.settle(bill, 0 if is_free else None)

    def amount(self, model: str, tokens_in: int, tokens_out: int) -> int:
        price = self.price_of(model) if self.unit is BudgetUnit.MONEY else None
        return amount_of(self.unit, price, tokens_in, tokens_out, self.unpriced)
