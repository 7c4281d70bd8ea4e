"""How often a method may be called: so many in each minute, and how many messages a page holds."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

MINUTE_S = 60.0
HISTORY = frozenset({"conversations.history", "conversations.replies"})


@dataclass(frozen=True, slots=True)
class Tier:
    per_minute: int
    page_max: int = 999
    page_usual: int = 100


INTERNAL = Tier(50)
"""An app of one's own workspace, or of the marketplace."""
DISTRIBUTED = Tier(1, page_max=15, page_usual=15)
"""An app that is given to others outside the marketplace, since May 2025."""


@dataclass(slots=True)
class Tiers:
    """Off until switched on, but for the size of pages."""

    clock: Callable[[], float]
    history: Tier = INTERNAL
    is_on: bool = False
    minute_s: float = MINUTE_S
    """Shorter in tests that have to see several minutes."""
    posts_per_minute: int = 60
    """Of messages, in each conversation."""
    refusals: list[tuple[str, str]] = field(default_factory=list)
    _calls: dict[tuple[str, str], deque[float]] = field(default_factory=dict)

    def wait_s(self, method: str, place: str) -> int | None:
        """The seconds to tell a call to wait; None if it may go on, and is counted."""
        if not self.is_on:
            return None
        if method in HISTORY:
            most, scope = self.history.per_minute, (method, "")
        elif method == "chat.postMessage":
            most, scope = self.posts_per_minute, (method, place)
        else:
            return None
        now = self.clock()
        calls = self._calls.setdefault(scope, deque())
        while calls and calls[0] <= now - self.minute_s:
            calls.popleft()
        if len(calls) < most:
            calls.append(now)
            return None
        self.refusals.append((method, place))
        return max(1, math.ceil(calls[0] + self.minute_s - now))
