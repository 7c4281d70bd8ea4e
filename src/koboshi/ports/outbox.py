"""The outbox of the store: deliveries owed to people, and their outcomes."""

from dataclasses import dataclass
from typing import Protocol

from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, WorkerId
from koboshi.domain.outbox import Delivery, DeliveryChange, DeliveryLimits, GivenUp, Near
from koboshi.domain.route import Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A session that is owed something, and when it can be sent."""

    delivery_id: DeliveryId
    """Its newest owed delivery."""
    session_id: SessionId
    route: Route
    wait_ms: int
    """Until its oldest delivery is due."""
    needs_channel: bool
    """That one waits while its channel is down."""
    reply_wait_ms: int | None
    """Until a reply to a command is due, which may overtake it; None without one."""

    def due_in_ms(self, *, is_up: bool) -> int | None:
        """Until something can be sent; None if that waits for the channel."""
        waits = [self.reply_wait_ms] if self.reply_wait_ms is not None else []
        if is_up or not self.needs_channel:
            waits.append(self.wait_ms)
        return min(waits, default=None)


class Outbox(Protocol):
    async def due(self, after: DeliveryId) -> tuple[Due, ...]:
        """Sessions that are owed something, by a delivery newer than `after`; with 0 all of them,
        with the times. Rows that another worker left in the middle of sending count."""
        ...

    async def claim(
        self,
        session_id: SessionId,
        worker_id: WorkerId,
        *,
        is_up: bool = True,
        limits: DeliveryLimits = ...,
    ) -> Delivery | GivenUp | int | None:
        """Take the session's oldest unsettled delivery for sending, or a reply to a command while
        that one waits. A delivery that is too old or poisoned is abandoned here. A number means:
        nothing is due for so many milliseconds. None means: nothing is owed, or it waits for a
        channel that is not up."""
        ...

    async def near(self, delivery: Delivery) -> Near:
        """What is known about the chat of a delivery."""
        ...

    async def files_kept(self) -> frozenset[str]:
        """The copies of files that are still to be sent, or can be fetched from us."""
        ...

    async def settle(self, delivery: Delivery, worker_id: WorkerId, change: DeliveryChange) -> bool:
        """Store the outcome of the send. The last delivery of an answered turn makes it done.
        Returns whether the session is owed more; later debts come with a hint."""
        ...

    async def label(
        self, delivery: Delivery, worker_id: WorkerId, *, may_be_duplicate: bool = True
    ) -> None:
        """From now on it is marked as a possible duplicate, or no longer is."""
        ...

    async def let_go(self, worker_id: WorkerId, under_way: frozenset[DeliveryId]) -> int:
        """What the worker sends, but for these, it does not send any more. Each may have arrived,
        and is owed again. Returns how many."""
        ...

    async def hasten(self, channel: ChannelName) -> int:
        """The channel is back: deliveries that wait for a time of ours are due now. Excepted are
        chats in which the platform demands quiet, held deliveries, and unknown outcomes. Returns
        how many were hastened."""
        ...

    async def retry(self, delivery_id: DeliveryId) -> DeliveryId | None:
        """Owe a rejected or abandoned delivery again, as a new one that names the old one. An owed
        one that waits for a time is due now. Returns the owed delivery: the existing one, if it was
        retried before. None if nothing was done: it was delivered, it is being sent, or there is no
        such delivery."""
        ...

    async def release(self, delivery_id: DeliveryId | None) -> int:
        """Held deliveries, after a restore or by a setting, are due now; None means all of them.
        One that may have arrived before says so. Returns how many were released."""
        ...

    async def drop(self, delivery_id: DeliveryId) -> bool:
        """Abandon an owed delivery. False if nothing was done: it is settled, it is being sent, or
        there is no such delivery."""
        ...
