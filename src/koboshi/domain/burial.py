"""When a node may say that another one is dead, and which.

A worker that beats changes its row. One whose row has not changed for as long as a lease lasts, by
the monotonic clock of the node that looks, is dead. No wall clock is asked, so a step of one
buries no living worker.

Only a node that is sure of its own connection may say so: it has itself beaten for a whole lease
without a gap, and by the server's clock as much time has passed as by its own. So after a restart
of the server, when no row has changed for a while, all nodes beat again before one of them judges.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from koboshi.domain.ids import WorkerId

LEASE_SECONDS = 15.0
"""How long a worker that gives no sign of life is believed to live."""
BEAT_PART, TRUST_PART, WAIT_PARTS = 1 / 3, 0.8, 4.0
"""All limits are parts of the lease: between two beats; how long a worker trusts its last one; how
long what belongs to a dead node is left to it."""
NODE_WAIT_MS = round(LEASE_SECONDS * WAIT_PARTS * 1_000)

APART_MS_MAX = 2_000
"""So far may the server's clock and our own have gone apart since we began to beat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeSign:
    """The row of a worker that has not ended: equal to an earlier look if it gave no sign since."""

    worker_id: WorkerId
    node: str
    heartbeat_ms: int
    batch: int
    """The number of its last batch, where the store counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    sign: LifeSign
    since_s: float
    """When the row was first seen as it is."""


def looked_again(
    before: Mapping[WorkerId, Sighting], signs: Iterable[LifeSign], now_s: float
) -> dict[WorkerId, Sighting]:
    """What is known of the others after another look."""
    after = {}
    for sign in signs:
        known = before.get(sign.worker_id)
        if known is None or known.sign != sign:
            known = Sighting(sign=sign, since_s=now_s)
        after[sign.worker_id] = known
    return after


def dead_among(
    seen: Mapping[WorkerId, Sighting], now_s: float, lease_s: float
) -> tuple[LifeSign, ...]:
    """The workers that gave no sign for a whole lease."""
    return tuple(each.sign for each in seen.values() if now_s - each.since_s >= lease_s)


def seconds_to_next(
    seen: Mapping[WorkerId, Sighting], now_s: float, lease_s: float, at_most_s: float
) -> float:
    """Until the next look: sooner than usual if a worker may be dead by then."""
    left = (each.since_s + lease_s - now_s for each in seen.values())
    return min((at_most_s, *(each for each in left if each > 0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBeats:
    """How long this node has beaten without a gap."""

    begun_s: float
    begun_ms: int
    last_s: float

    def after_beat(self, server_ms: int, now_s: float, lease_s: float) -> "OwnBeats":
        """After a beat that the server took at `server_ms`. A gap, or clocks that went apart, begin
        the count anew."""
        passed_ms = (now_s - self.begun_s) * 1_000
        is_apart = abs(server_ms - self.begun_ms - passed_ms) > APART_MS_MAX
        if now_s - self.last_s >= lease_s or is_apart:
            return first_beat(server_ms, now_s)
        return replace(self, last_s=now_s)

    def may_bury(self, now_s: float, lease_s: float) -> bool:
        """Whether this node may say that another is dead."""
        return now_s - self.begun_s >= lease_s and now_s - self.last_s < lease_s / 2


def first_beat(server_ms: int, now_s: float) -> OwnBeats:
    return OwnBeats(begun_s=now_s, begun_ms=server_ms, last_s=now_s)
