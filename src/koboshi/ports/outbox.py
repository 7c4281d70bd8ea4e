"""The outbox of the store: what is owed to people, and what becomes of it."""

from dataclasses import dataclass
from typing import Protocol

from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, WorkerId
from koboshi.domain.outbox import Delivery, DeliveryChange, DeliveryLimits, GivenUp, Near
from koboshi.domain.route import Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A session to which something is owed, and when it can be sent."""

    delivery_id: DeliveryId
    """The newest that is owed to it."""
    session_id: SessionId
    route: Route
    wait_ms: int
    """Until its oldest delivery is due."""
    needs_channel: bool
    """That one waits while its channel is down."""
    reply_wait_ms: int | None
    """Until a reply to a command is due, which may overtake it; None if there is none."""

    def due_in_ms(self, *, is_up: bool) -> int | None:
        """Until something can be sent; None if that waits for the channel."""
        waits = [self.reply_wait_ms] if self.reply_wait_ms is not None else []
        if is_up or not self.needs_channel:
            waits.append(self.wait_ms)
        return min(waits, default=None)


class Outbox(Protocol):
    async def due(self, after: DeliveryId) -> tuple[Due, ...]:
        """Sessions to which something is owed, by a delivery newer than `after`; with 0 all of
        them, with the times. Rows that another worker left in the middle of sending count."""
        ...

    async def claim(
        self,
        session_id: SessionId,
        worker_id: WorkerId,
        *,
        is_up: bool = True,
        limits: DeliveryLimits = ...,
    ) -> Delivery | GivenUp | int | None:
        """Take the session's oldest unsettled delivery for sending, or a reply to a command where
        that one has to wait. What is too old, or poisoned, is given up here. A number says that
        nothing is due for so many milliseconds; None that nothing is owed, or that it waits for a
        channel that is not up."""
        ...

    async def near(self, delivery: Delivery) -> Near:
        """What is known of the chat that a delivery goes to."""
        ...

    async def files_kept(self) -> frozenset[str]:
        """The copies of files that are still to be sent, or can be fetched from us."""
        ...

    async def settle(self, delivery: Delivery, worker_id: WorkerId, change: DeliveryChange) -> bool:
        """Store what the send made of it. The last one of an answered turn makes it done. Returns
        whether the session is owed more; what is owed later comes with a hint."""
        ...

    async def label(
        self, delivery: Delivery, worker_id: WorkerId, *, may_be_duplicate: bool = True
    ) -> None:
        """From now on it says that it may be a duplicate, or does not any more."""
        ...

    async def hasten(self, channel: ChannelName) -> int:
        """The channel is back: what waits for a time of our own is due now. That does not hold for
        chats in which the platform wants quiet, for what is held, and for unknown outcomes. Returns
        how many were hastened."""
        ...

    async def retry(self, delivery_id: DeliveryId) -> DeliveryId | None:
        """Owe again what was rejected or abandoned, as a new delivery that names the old one; what
        is owed and waits for a time is due now. Returns the delivery that is owed: the one there
        is already, if it was retried before. None if nothing was done: it was delivered, it is
        being sent, or there is no such delivery."""
        ...

    async def release(self, delivery_id: DeliveryId | None) -> int:
        """What is held, after a restore or by a setting, is due now; None means all of it. What may
        have arrived before says so. Returns how many were released."""
        ...

    async def drop(self, delivery_id: DeliveryId) -> bool:
        """Abandon what is owed. False if nothing was done: it is settled, it is being sent, or
        there is no such delivery."""
        ...
