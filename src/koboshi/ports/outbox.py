"""The outbox of the store: what is owed to people, and what becomes of it."""

from typing import Protocol

from koboshi.domain.ids import DeliveryId, SessionId, WorkerId
from koboshi.domain.outbox import Delivery, DeliveryChange, Near
from koboshi.domain.route import Route


class Outbox(Protocol):
    async def due(self, after: DeliveryId) -> tuple[tuple[DeliveryId, SessionId, Route], ...]:
        """Sessions to which something is owed, by a delivery newer than `after`: the newest one
        each. Rows that another worker left in the middle of sending count."""
        ...

    async def claim(self, session_id: SessionId, worker_id: WorkerId) -> Delivery | int | None:
        """Take the session's oldest unsettled delivery for sending. A number says that it is not
        due for so many milliseconds; None that nothing is owed."""
        ...

    async def near(self, delivery: Delivery) -> Near:
        """What is known of the chat that a delivery goes to."""
        ...

    async def files_owed(self) -> frozenset[str]:
        """The copies of files that are still to be sent."""
        ...

    async def settle(self, delivery: Delivery, worker_id: WorkerId, change: DeliveryChange) -> bool:
        """Store what the send made of it. The last one of an answered turn makes it done. Returns
        whether the session is owed more; what is owed later comes with a hint."""
        ...

    async def label(self, delivery: Delivery, worker_id: WorkerId) -> None:
        """From now on it says that it may be a duplicate."""
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
