"""What bills each call of a model, as the configuration says."""

from collections.abc import Callable
from functools import cache

from koboshi.app.prices import budget_limits, prices_of
from koboshi.config import Config
from koboshi.domain.price import Price, price_of
from koboshi.ports.budget import Budget
from koboshi.runtime.billing import Billing

MILLION = 1_000_000
_PROVIDERS = {"openai-responses": "openai"}


def billing_of(config: Config, budget: Budget, on_refused: Callable[[str], None]) -> Billing | None:
    """What bills each call; None if there is no budget."""
    limits = budget_limits(config)
    if not limits.is_set:
        return None
    unpriced = config.budget.unpriced
    return Billing(
        budget=budget,
        unit=limits.unit,
        price_of=_prices(config),
        unpriced=Price(input=unpriced, output=unpriced),
        reply_tokens=config.budget.reply_tokens,
        on_refused=on_refused,
    )


def _prices(config: Config) -> Callable[[str], Price | None]:
    """The prices of the configuration, else those that `genai-prices` ships with."""
    own = prices_of(config)
    # An address of your own may have prices of its own.
    elsewhere = {model.name for model in config.links if model.base_url}

    @cache
    def find(name: str) -> Price | None:
        if name in own:
            return own[name]
        return None if name in elsewhere else shipped_price(name)

    return find


def shipped_price(name: str) -> Price | None:
    """What `openai:gpt-5` costs, as the library knows it; None without it, or for a model that it
    does not know. Nothing is fetched."""
    try:
        # Loaded with the first call that is billed: it is an extra, and takes a while.
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    provider, _, model = name.partition(":")
    try:
        costs = [
            float(
                calc_price(
                    used, model_ref=model, provider_id=_PROVIDERS.get(provider, provider)
                ).total_price
            )
            for used in (Usage(input_tokens=MILLION), Usage(output_tokens=MILLION))
        ]
    except (LookupError, ValueError):
        return None
    return price_of(*costs)
