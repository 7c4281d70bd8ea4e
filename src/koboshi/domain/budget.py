"""What may be spent in a day: limits, what a call reserves, and when it is too much. Pure.

All amounts are integers of one unit: millionths of a dollar, or tokens. A call reserves its
estimate before it is made, and its reply settles it. The provider is told to write no more than was
reserved. So what is used and reserved passes a limit by at most one reply: a call that would pass
it is admitted only if nothing else is reserved.
"""

from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum

from koboshi.domain.errors import KoboshiError
from koboshi.domain.price import Price
from koboshi.domain.transcript import Choice
from koboshi.domain.usage import MICROS, money, tokens_words

HELD = "budget: "
"""How the reason of a turn begins that waits for more."""
TIMED_PARTS, WHOLE_PARTS = 4, 5
"""Schedules and goals end at four fifths: people come first."""


class BudgetUnit(StrEnum):
    MONEY = "money"
    TOKENS = "tokens"


class BudgetScope(StrEnum):
    ALL = "all"
    PERSON = "person"
    CHAT = "chat"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """For a day; 0 is no limit."""

    unit: BudgetUnit = BudgetUnit.MONEY
    day: int = 0
    person: int = 0
    chat: int = 0
    schedule: int = 0

    @property
    def is_set(self) -> bool:
        return bool(self.day or self.person or self.chat or self.schedule)

    def of(self, scope: BudgetScope) -> int:
        match scope:
            case BudgetScope.ALL:
                return self.day
            case BudgetScope.PERSON:
                return self.person
            case BudgetScope.CHAT:
                return self.chat
            case BudgetScope.SCHEDULE:
                return self.schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """What was spent of one limit on one day."""

    purse_id: int
    scope: BudgetScope
    subject: str
    unit: BudgetUnit
    limit: int
    """With what an owner added today."""
    used: int
    reserved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """A call that reserved its estimate."""

    bill_id: int
    is_limited: bool = True
    """Whether any limit counts it: then its reply may be no longer than was reserved."""


class OverBudget(KoboshiError):
    """The call may not be made today: the turn waits until `wait_ms` have passed, or an owner
    allows more."""

    def __init__(self, words: str, wait_ms: int) -> None:
        super().__init__(words)
        self.words = words
        self.wait_ms = wait_ms


def admits(purse: Purse, amount: int, *, is_timed: bool) -> bool:
    """Whether a call with this estimate may be made."""
    limit = purse.limit * TIMED_PARTS // WHOLE_PARTS if is_timed else purse.limit
    if purse.used + purse.reserved + amount <= limit:
        return True
    return purse.reserved == 0 and purse.used < limit and not is_timed


def day_of(now_ms: int, zone: tzinfo) -> int:
    """The number of the day."""
    return datetime.fromtimestamp(now_ms / 1000, zone).date().toordinal()


def amount_of(
    unit: BudgetUnit, price: Price | None, tokens_in: int, tokens_out: int, unpriced: Price
) -> int:
    """What these tokens are counted as. A model without a price is counted as if it had
    `unpriced`, never as nothing."""
    tokens = tokens_in + tokens_out
    if unit is BudgetUnit.TOKENS:
        return tokens
    return max((price or unpriced).cost_of(tokens_in, tokens_out), 1 if tokens else 0)


def amount_words(unit: BudgetUnit, amount: int) -> str:
    return money(amount) if unit is BudgetUnit.MONEY else tokens_words(amount)


def step_of(purse: Purse, limits: BudgetLimits) -> int:
    """How much one press adds: a fifth of the limit."""
    return max(1, limits.of(purse.scope) // WHOLE_PARTS)


def used_words(purse: Purse, *, is_timed: bool = False) -> str:
    """How a limit stands."""
    whose = "" if purse.scope is BudgetScope.ALL else f" for this {purse.scope}"
    used = amount_words(purse.unit, purse.used + purse.reserved)
    words = f"{used} of today's {amount_words(purse.unit, purse.limit)}{whose} used"
    kept = "; the last fifth is kept for people, and schedules and goals wait" if is_timed else ""
    return f"{words}{kept}"


def question_words(purse: Purse, who: str) -> str:
    return f"{used_words(purse)}. {who} waits."


def offers(purse: Purse, limits: BudgetLimits) -> tuple[Choice, ...]:
    """The answers to the question; each stands for a command."""
    more = amount_words(purse.unit, step_of(purse, limits))
    return (
        Choice(choice_id=f"/budget more {purse.purse_id}", label=f"{more} more"),
        Choice(choice_id="/budget tomorrow", label="Tomorrow"),
    )


def micros_of(dollars: float) -> int:
    return round(dollars * MICROS)
