"""What may be spent: every billed call reserves its estimate here before it is made."""

from typing import Protocol

from koboshi.domain.budget import Bill, OverBudget, Purse
from koboshi.domain.ids import SessionId, TurnId
from koboshi.domain.turn import Claim


class Budget(Protocol):
    async def reserve(
        self, session_id: SessionId, turn_id: TurnId, model: str, amount: int
    ) -> Bill | OverBudget:
        """Reserve the estimate of a call in every counter that it belongs to; or say why it may not
        be made, and ask the owners once."""
        ...

    async def settle(self, bill: Bill, paid: int | None) -> None:
        """What the call cost counts instead of its estimate; None: that is not known, and the
        estimate counts. A bill that is settled already stays as it is."""
        ...

    async def hold(self, claim: Claim, wait_ms: int, words: str) -> None:
        """Give the claim back until tomorrow, or until an owner allows more. That is no failure of
        a model."""
        ...

    async def today(self) -> tuple[Purse, ...]:
        """How the limits stand."""
        ...
