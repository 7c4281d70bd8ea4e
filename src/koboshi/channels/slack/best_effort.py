"""What only passes: typing, marks, edits. If it cannot be shown, nothing is lost."""

from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.common.pacing import RateLimiter
from koboshi.channels.slack.api import SlackApi
from koboshi.channels.slack.outcomes import RATE_LIMITED
from koboshi.channels.slack.types import SlackReply

log = structlog.get_logger()

SHOW_SECONDS = 5.0
_FOR_GOOD = frozenset({"missing_scope", "not_allowed_token_type", "unknown_method"})


@dataclass(slots=True, kw_only=True)
class SlackAsides:
    api: SlackApi
    manners: RateLimiter
    _refused: set[str] = field(default_factory=set)
    """Methods that this app may not call; they are not tried again."""

    async def show(self, method: str, chat: str, arguments: dict[str, object]) -> None:
        """Try it once, unless the chat is paused."""
        if method in self._refused or not self.manners.may_show(chat):
            return
        with suppress(NotReached, NoAnswer):
            answered = await self.api.write(method, arguments, seconds=SHOW_SECONDS)
            reply = answered.read(SlackReply)
            if reply.error == RATE_LIMITED:
                self.manners.pause_until(chat, answered.wait_ms / 1000)
            elif reply.error in _FOR_GOOD:
                self._refused.add(method)
                log.info("not_shown", method=method, why=reply.error, needed=reply.needed)
