"""How often an account may speak: a little at once, then steadily. Platforms ask for this, and
refuse or send away those who do not keep to it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from anyio import sleep

from koboshi.ports.clock import Clock

CHATS_MAX = 10_000
"""Chats that are remembered. One that is forgotten starts anew."""
EVERYWHERE = ""
"""The place of a pause that holds for all chats."""


@dataclass(frozen=True, slots=True)
class ChatRate:
    """How often one chat may hear from us."""

    per_second: float
    at_once: int


@dataclass(slots=True)
class Bucket:
    """So many at once, and then so many in a second."""

    per_second: float
    at_once: float
    left: float
    seen: float

    def wait_seconds(self, now: float) -> float:
        """How long until one may go."""
        self.left = min(self.at_once, self.left + (now - self.seen) * self.per_second)
        self.seen = now
        return max(0.0, (1 - self.left) / self.per_second)

    def take(self, now: float) -> float:
        """One goes. Returns how long it has to wait before."""
        wait = self.wait_seconds(now)
        self.left -= 1
        return wait


@dataclass(slots=True)
class RateLimiter:
    """`per_second` is for all chats together; 0 means that we have no limits of our own. `rate_of`
    says how often a chat may hear from us."""

    clock: Clock
    per_second: float
    rate_of: Callable[[str], ChatRate]
    _all: Bucket = field(init=False)
    _chats: dict[str, Bucket] = field(default_factory=dict)
    _quiet: dict[str, float] = field(default_factory=dict)
    """Until when the platform wants to hear nothing from us in a chat."""

    def __post_init__(self) -> None:
        now, at_once = self.clock.monotonic(), max(1.0, self.per_second)
        self._all = Bucket(self.per_second or 1.0, at_once, at_once, now)

    async def wait_for_chat(self, chat: str) -> None:
        """Until one more message may go to a chat. Only one at a time is sent there."""
        if not self.per_second:
            return
        wait = self._bucket(chat).wait_seconds(self.clock.monotonic())
        if wait:
            await sleep(wait)

    async def wait_for_all(self, chat: str = "") -> None:
        """Until one more may go at all. It counts as sent from here on, to the chat if there is
        one."""
        if not self.per_second:
            return
        now = self.clock.monotonic()
        if chat:
            self._bucket(chat).take(now)
        wait = self._all.take(now)
        if wait:
            await sleep(wait)

    def pause_until(self, chat: str, seconds: float) -> None:
        """The platform asks for a pause of this length: in a chat, or EVERYWHERE."""
        while len(self._quiet) >= CHATS_MAX:
            del self._quiet[next(iter(self._quiet))]
        self._quiet[chat] = self.clock.monotonic() + seconds

    def may_show(self, chat: str) -> bool:
        """Whether what only passes may be shown there now."""
        return not self.quiet_seconds(chat)

    def quiet_seconds(self, chat: str) -> float:
        """How much of that pause is left."""
        now = self.clock.monotonic()
        for place in {chat, EVERYWHERE}:
            if self._quiet.get(place, now) < now:
                del self._quiet[place]
        return max((self._quiet.get(place, now) - now for place in (chat, EVERYWHERE)), default=0.0)

    @property
    def chats_remembered(self) -> int:
        return len(self._chats)

    def _bucket(self, chat: str) -> Bucket:
        found = self._chats.get(chat)
        if found is None:
            while len(self._chats) >= CHATS_MAX:
                del self._chats[next(iter(self._chats))]
            rate = self.rate_of(chat)
            now = self.clock.monotonic()
            found = Bucket(rate.per_second, rate.at_once, rate.at_once, now)
            self._chats[chat] = found
        return found
