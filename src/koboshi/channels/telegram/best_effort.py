"""What only passes: typing, drafts, marks, buttons that are released. If it cannot be shown,
nothing is lost, and a platform that asks for a pause gets it."""

from contextlib import suppress
from dataclasses import dataclass

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.common.pacing import RateLimiter
from koboshi.channels.telegram.client import BotApi
from koboshi.channels.telegram.outcomes import TOO_MANY, wait_ms_of
from koboshi.channels.telegram.types import BotAnswer

SHOW_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BestEffort:
    api: BotApi
    manners: RateLimiter

    async def show(self, method: str, chat: str, parameters: dict[str, object]) -> None:
        """Try it once, unless the chat is paused."""
        if not self.manners.may_show(chat):
            return
        with suppress(NotReached, NoAnswer):
            self.note_429(chat, await self.api.call(method, parameters, seconds=SHOW_SECONDS))

    def note_429(self, chat: str, answer: BotAnswer) -> None:
        """Show nothing there for as long as the platform asks for, if it does."""
        if answer.error_code == TOO_MANY:
            self.manners.pause_until(chat, wait_ms_of(answer) / 1000)
