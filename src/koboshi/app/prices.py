"""What the configuration says that may be spent, and what models cost. A look at a home needs
no more of the budget than this."""

from koboshi.config import Config
from koboshi.domain.budget import BudgetLimits, BudgetUnit, micros_of
from koboshi.domain.price import Price, price_of


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
    return {name: price for name, price in priced.items() if price is not None}
