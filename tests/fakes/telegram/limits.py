"""How often a bot may send: a limit for each chat and one for all, and who did not wait."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

EVERYWHERE: tuple[int | None, str] = (None, "everywhere")


@dataclass(slots=True)
class Bucket:
    """A token bucket."""

    per_s: float
    burst: float
    held: float
    at: float

    def wait_s(self, now: float) -> float:
        """How long until there is a token; 0 if there is one."""
        self.held = min(self.burst, self.held + (now - self.at) * self.per_s)
        self.at = now
        return 0 if self.held >= 1 - 1e-9 else (1 - self.held) / self.per_s

    def take(self) -> None:
        self.held -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TooEarly:
    """A request that came before the time it had been told to wait for."""

    method: str
    chat: int | None
    at: float
    not_before: float


@dataclass(slots=True)
class Limits:
    """Off until switched on; who comes too early is recorded in any case."""

    clock: Callable[[], float]
    is_on: bool = False
    chat_per_s: float = 1
    chat_burst: float = 1
    all_per_s: float = 30
    all_burst: float = 30
    too_early: list[TooEarly] = field(default_factory=list)
    refusals: int = 0
    _buckets: dict[int | None, Bucket] = field(default_factory=dict)
    _not_before: dict[tuple[int | None, str], float] = field(default_factory=dict)

    def switch_on(
        self,
        *,
        chat_per_s: float = 1,
        chat_burst: float = 1,
        all_per_s: float = 30,
        all_burst: float = 30,
    ) -> None:
        self.chat_per_s, self.chat_burst = chat_per_s, chat_burst
        self.all_per_s, self.all_burst = all_per_s, all_burst
        self._buckets.clear()
        self.is_on = True

    def switch_off(self) -> None:
        self.is_on = False

    def watch(self, method: str, chat: int | None) -> None:
        """Record a request that comes too early."""
        if not self._not_before:
            return
        now = self.clock()
        for scope in (_scope(method, chat), EVERYWHERE):
            until = self._not_before.get(scope, 0)
            if now < until:
                early = TooEarly(method=method, chat=chat, at=now, not_before=until)
                self.too_early.append(early)
                return

    def refusal(self, method: str, chat: int | None) -> int | None:
        """The seconds to tell a request to wait; None if it may go on."""
        if not self.is_on or not is_limited(method):
            return None
        now = self.clock()
        for_all = self._bucket(None, now)
        for_chat = self._bucket(chat, now)
        wait_s = max(for_all.wait_s(now), for_chat.wait_s(now))
        if not wait_s:
            for_all.take()
            for_chat.take()
            return None
        seconds = math.ceil(wait_s)
        self._note(_scope(method, chat) if for_chat.wait_s(now) else EVERYWHERE, seconds)
        return seconds

    def tell_to_wait(self, method: str, chat: int | None, seconds: float) -> None:
        """Remember that this method in this chat was told to wait."""
        self._note(_scope(method, chat), seconds)

    def _note(self, scope: tuple[int | None, str], seconds: float) -> None:
        self.refusals += 1
        until = self.clock() + seconds
        self._not_before[scope] = max(until, self._not_before.get(scope, 0))

    def _bucket(self, scope: int | None, now: float) -> Bucket:
        bucket = self._buckets.get(scope)
        if bucket is None:
            is_all = scope is None
            per_s = self.all_per_s if is_all else self.chat_per_s
            burst = self.all_burst if is_all else self.chat_burst
            bucket = self._buckets[scope] = Bucket(per_s, burst, burst, now)
        return bucket


def is_limited(method: str) -> bool:
    """Messages and their edits count; the rest has limits of its own that no one meets."""
    return method.startswith(("send", "edit")) and method not in {
        "sendchataction",
        "sendmessagedraft",
    }


def _scope(method: str, chat: int | None) -> tuple[int | None, str]:
    """Messages of a chat wait together; any other method waits for itself."""
    return chat, "messages" if is_limited(method) else method
