"""Discord's rate limits as its answers tell them: a bucket for each kind of request and channel.

`topics/rate-limits.mdx`: the limits are not to be known beforehand. An answer names the bucket of
its request, which other requests may share, how many are left in it and when it is full again.
Channels and servers have buckets of their own. One limit is for everything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from koboshi.ports.clock import Clock

BUCKETS_MAX = 10_000
"""Buckets that are remembered. One that is forgotten is told of again by the next answer."""


@dataclass(slots=True)
class CallBucket:
    left: int
    full_at: float


@dataclass(slots=True)
class RateBuckets:
    clock: Clock
    _names: dict[str, str] = field(default_factory=dict)
    _buckets: dict[tuple[str, str], CallBucket] = field(default_factory=dict)
    _all_quiet_until: float = 0.0

    def take(self, kind: str, place: str) -> float:
        """A request is about to go: how long it must wait. It counts only if it need not."""
        now = self.clock.monotonic()
        wait = max(0.0, self._all_quiet_until - now)
        bucket = self._buckets.get(self._key(kind, place))
        if bucket is None or bucket.full_at <= now:
            return wait
        if bucket.left <= 0:
            return max(wait, bucket.full_at - now)
        if not wait:
            bucket.left -= 1
        return wait

    def note(self, kind: str, place: str, headers: Mapping[str, str]) -> None:
        """What an answer says about its bucket."""
        name = headers.get("x-ratelimit-bucket")
        if name is not None:
            self._names[kind] = name
        left, after = headers.get("x-ratelimit-remaining"), headers.get("x-ratelimit-reset-after")
        if left is not None and after is not None:
            self._set(kind, place, _number(left), _number(after))

    def hold(self, kind: str, place: str, seconds: float, *, is_global: bool) -> None:
        """The platform refused a request and says how long to wait."""
        if is_global:
            self._all_quiet_until = self.clock.monotonic() + seconds
        else:
            self._set(kind, place, 0, seconds)

    def _set(self, kind: str, place: str, left: float, after: float) -> None:
        while len(self._buckets) >= BUCKETS_MAX:
            del self._buckets[next(iter(self._buckets))]
        full_at = self.clock.monotonic() + after
        self._buckets[self._key(kind, place)] = CallBucket(int(left), full_at)

    def _key(self, kind: str, place: str) -> tuple[str, str]:
        return self._names.get(kind, kind), place


def _number(words: str) -> float:
    try:
        return max(0.0, float(words))
    except ValueError:
        return 0.0
