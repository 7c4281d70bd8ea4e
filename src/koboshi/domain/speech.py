"""What the writing down of a recording is counted as: by the minute, never as nothing. Pure.

A service bills minutes or tokens. How long a recording is stands in it, where a stranger wrote it;
so before the call it is reckoned from the size, and the service's own figure settles it.
"""

from dataclasses import dataclass

from koboshi.domain.budget import BudgetUnit, amount_of
from koboshi.domain.price import Price
from koboshi.domain.usage import MICROS

TOKENS_PER_MINUTE = 1_000
"""What a minute is counted as where neither its price nor its tokens are known."""
BYTES_PER_SECOND = ((b"RIFF", 16_000), (b"fLaC", 16_000), (b"OggS", 2_000))
"""How little a second of speech takes, by how a recording begins."""
BYTES_PER_SECOND_ELSE = 3_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechUse:
    """What a recording takes: its length, and tokens if the service counts them."""

    seconds: float
    tokens: int = 0


def reckoned(content: bytes) -> SpeechUse:
    """What a recording takes at most, before a service says it."""
    rates = (rate for head, rate in BYTES_PER_SECOND if content.startswith(head))
    return SpeechUse(seconds=max(1.0, len(content) / next(rates, BYTES_PER_SECOND_ELSE)))


def speech_amount(
    unit: BudgetUnit, use: SpeechUse, minute_price: float | None, unpriced: Price
) -> int:
    """In the unit of the budget. A written price of 0 says that it costs nothing; without a price
    its tokens are counted as those of a model whose price is not known."""
    if minute_price == 0:
        return 0
    if unit is BudgetUnit.MONEY and minute_price is not None:
        return max(1, round(use.seconds / 60 * minute_price * MICROS))
    tokens = use.tokens or max(1, round(use.seconds / 60 * TOKENS_PER_MINUTE))
    return amount_of(unit, None, tokens, 0, unpriced)
