"""What the configuration says that may be spent, and what models cost. A look at a home needs
no more of the budget than this."""

from koboshi.config import Config
from koboshi.config.models import VoiceConfig
from koboshi.domain.budget import BudgetLimits, BudgetUnit, micros_of
from koboshi.domain.price import Price, price_of

LOCAL_VOICE = "voice:local"
"""The name of a model on this machine that writes down speech. It costs nothing."""


def budget_limits(config: Config) -> BudgetLimits:
    budget = config.budget
    unit = BudgetUnit(budget.unit)
    whole = micros_of if unit is BudgetUnit.MONEY else round
    return BudgetLimits(
        unit=unit,
        day=whole(budget.day),
        person=whole(budget.person),
        chat=whole(budget.chat),
        schedule=whole(budget.schedule),
    )


def prices_of(config: Config) -> dict[str, Price]:
    """What the configuration says that models cost, by their names at their providers."""
    priced = {model.name: price_of(model.input_price, model.output_price) for model in config.links}
    known = {name: price for name, price in priced.items() if price is not None}
    known[LOCAL_VOICE] = Price()
    minute = config.voice.minute_price
    return known if minute is None else known | {voice_of(config.voice): Price(minute=minute)}


def voice_of(voice: VoiceConfig) -> str:
    """By what name a service that writes down speech is billed."""
    return f"voice:{voice.model}"
