"""How much of a conversation the model is shown, from the configuration."""

from koboshi.agent.summary import ContextLimits
from koboshi.config import Config


def context_limits(config: Config) -> ContextLimits:
    limits = config.limits
    return ContextLimits(
        tokens_max=limits.context_tokens_max,
        steps_max=limits.context_steps_max,
        summary_tokens_max=limits.summary_tokens_max,
    )
