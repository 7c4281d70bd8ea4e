"""What keeps a gateway from being at rest, as the gateway itself shows it. Pure.

A pause of the gateway's own is no fault, however long it is: what fails is tried again after
pauses that grow. Nor is a long queue: a group is told 20 messages in a minute and no more. So the
wait for the rest follows the times that the gateway shows, and goes on while things come to an end.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec


class RestRoute(msgspec.Struct, frozen=True, kw_only=True):
    channel: str
    chat: str
    thread: str = ""

    def __str__(self) -> str:
        return f"{self.channel}/{self.chat}{'/' if self.thread else ''}{self.thread}"


class TurnLeftOpen(msgspec.Struct, frozen=True, kw_only=True):
    turn_id: int
    route: RestRoute
    state: str
    event: str
    reason: str | None = None
    due_ms: int | None = None


class OpenEntry(msgspec.Struct, frozen=True, kw_only=True):
    entry_id: int
    session_id: int | None
    kind: str
    state: str


class OpenDelivery(msgspec.Struct, frozen=True, kw_only=True):
    delivery_id: int
    session_id: int
    cause: str
    state: str
    attempts: int
    reason: str | None = None
    due_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StillOpen:
    """Everything that is not over. `updates` were written on the platform and not acknowledged;
    `runners` are the numbers of commands that run."""

    turns: tuple[TurnLeftOpen, ...] = ()
    entries: tuple[OpenEntry, ...] = ()
    deliveries: tuple[OpenDelivery, ...] = ()
    unreached: tuple[str, ...] = ()
    """Channels that cannot be had, with the reason."""
    runners: tuple[int, ...] = ()
    updates: int = 0

    def due_in_s(self, now_ms: int) -> float:
        """How long until the last of it is due; 0 if nothing waits for a time."""
        moments = [*(each.due_ms for each in self.turns)]
        moments += [each.due_ms for each in self.deliveries]
        return max((*(each - now_ms for each in moments if each is not None), 0)) / 1_000

    def has_ended_some_of(self, before: "StillOpen") -> bool:
        """Whether something came to its end since an earlier look."""
        return bool(before._ids() - self._ids())

    def _ids(self) -> set[str]:
        return {
            *(f"t{each.turn_id}" for each in self.turns),
            *(f"m{each.entry_id}" for each in self.entries),
            *(f"d{each.delivery_id}" for each in self.deliveries),
        }

    def words(self, now_ms: int) -> str:
        """All of it, for a developer who looks for the cause."""
        return "; ".join(self._each(now_ms)) or "nothing that the gateway shows"

    def _each(self, now_ms: int) -> Iterator[str]:
        for turn in self.turns:
            why = f" ({turn.reason})" if turn.reason else ""
            due = _due(turn.due_ms, now_ms)
            yield f"t{turn.turn_id} in {turn.route} is {turn.state}, {turn.event}{why}{due}"
        for entry in self.entries:
            yield f"the {entry.kind} m{entry.entry_id} in s{entry.session_id} is {entry.state}"
        for delivery in self.deliveries:
            why = f" ({delivery.reason})" if delivery.reason else ""
            tried = f"tried {delivery.attempts} times{_due(delivery.due_ms, now_ms)}"
            name = f"d{delivery.delivery_id} ({delivery.cause}) in s{delivery.session_id}"
            yield f"{name} is {delivery.state}{why}, {tried}"
        for number in self.runners:
            yield f"the runner of p{number} lives"
        if self.updates:
            yield f"{self.updates} updates of the platform are not acknowledged"
        yield from self.unreached


def _due(due_ms: int | None, now_ms: int) -> str:
    if due_ms is None:
        return ""
    left_s = (due_ms - now_ms) / 1_000
    return f", due in {left_s:.0f} s" if left_s > 0 else ", due now"
