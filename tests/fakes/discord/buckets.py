"""Rate limits: a bucket for each kind of request and its channel, told in headers, and one for all.

`topics/rate-limits.mdx`: the bucket's name leaves the channel out; 429 tells how long to wait.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

Headers = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Window:
    """So many requests until it ends."""

    limit: int
    seconds: float
    ends_at: float
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyRequest:
    """A request that came although its client had been told to wait."""

    name: str
    major: str
    at: float
    not_before: float


@dataclass(slots=True)
class Buckets:
    clock: Callable[[], float]
    limits: dict[str, tuple[int, float]] = field(default_factory=dict)
    """How many requests of a name go in how many seconds, for each channel."""
    all_limit: tuple[int, float] = (1_000_000, 1.0)
    too_early: list[EarlyRequest] = field(default_factory=list)
    refusals: int = 0
    _windows: dict[tuple[str, str], Window] = field(default_factory=dict)
    _all: Window | None = None
    _all_not_before: float = 0.0

    def switch_on(
        self,
        *,
        create: int = 5,
        history: int = 5,
        seconds: float = 5.0,
        everything: int = 50,
    ) -> None:
        self.limits = {"createMessage": (create, seconds), "getMessages": (history, seconds)}
        self.all_limit = (everything, 1.0)

    def hold_all(self, seconds: float) -> None:
        """The whole bot is told to wait."""
        self._all_not_before = self.clock() + seconds

    def ask(self, name: str, major: str) -> "Ruling":
        now = self.clock()
        if now < self._all_not_before:
            return self._refuse(name, major, self._all_not_before - now, is_global=True)
        overall = self._all
        if overall is None or now >= overall.ends_at:
            limit, seconds = self.all_limit
            overall = self._all = Window(limit, seconds, now + seconds, limit)
        if overall.left <= 0:
            self._all_not_before = overall.ends_at
            return self._refuse(name, major, overall.ends_at - now, is_global=True)
        overall.left -= 1
        window = self._window(name, major, now)
        if window is None:
            return Ruling()
        if window.left <= 0:
            early = EarlyRequest(name=name, major=major, at=now, not_before=window.ends_at)
            self.too_early.append(early)
            return self._refuse(name, major, window.ends_at - now, window=window)
        window.left -= 1
        return Ruling(headers=_headers(name, window, now))

    def _window(self, name: str, major: str, now: float) -> Window | None:
        limited = self.limits.get(name)
        if limited is None:
            return None
        found = self._windows.get((name, major))
        if found is None or now >= found.ends_at:
            limit, seconds = limited
            found = self._windows[name, major] = Window(limit, seconds, now + seconds, limit)
        return found

    def _refuse(
        self,
        name: str,
        major: str,
        wait_s: float,
        *,
        window: Window | None = None,
        is_global: bool = False,
    ) -> "Ruling":
        self.refusals += 1
        scope = ("X-RateLimit-Scope", "global" if is_global else "user")
        headers: Headers = (scope, ("Retry-After", str(math.ceil(wait_s))))
        if is_global:
            headers += (("X-RateLimit-Global", "true"),)
        if window is not None:
            headers += _headers(name, window, self.clock())
        return Ruling(headers=headers, wait_s=round(wait_s, 3) or 0.001, is_global=is_global)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    headers: Headers = ()
    wait_s: float = 0.0
    is_global: bool = False


def _headers(name: str, window: Window, now: float) -> Headers:
    return (
        ("X-RateLimit-Limit", str(window.limit)),
        ("X-RateLimit-Remaining", str(window.left)),
        ("X-RateLimit-Reset", f"{window.ends_at:.3f}"),
        ("X-RateLimit-Reset-After", f"{max(window.ends_at - now, 0):.3f}"),
        ("X-RateLimit-Bucket", hashlib.md5(name.encode()).hexdigest()),
    )
