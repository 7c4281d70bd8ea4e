"""How often a bot of Telegram may speak, as Telegram asks."""

from koboshi.channels.common.pacing import ChatRate, RateLimiter
from koboshi.ports.clock import Clock

CHAT_PER_SECOND = 1.0
CHAT_AT_ONCE = 4
GROUP_PER_SECOND = 20 / 60
GROUP_AT_ONCE = 5
_CHAT = ChatRate(CHAT_PER_SECOND, CHAT_AT_ONCE)
_GROUP = ChatRate(GROUP_PER_SECOND, GROUP_AT_ONCE)


def telegram_limiter(clock: Clock, per_second: float) -> RateLimiter:
    """The numbers of groups are negative."""
    return RateLimiter(clock, per_second, lambda chat: _GROUP if chat.startswith("-") else _CHAT)
