"""What an operator does to rows."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

from koboshi.control.rows import Answer, RowRequests, number_in, refusal
from koboshi.domain.command import OperatorAction, Standing
from koboshi.domain.ids import DeliveryId, EntryId, TurnId, shown
from koboshi.domain.inbox import EntryState
from koboshi.domain.outbox import UNSETTLED, DeliveryState
from koboshi.domain.retry import WHY_NOT, why_not_dropped
from koboshi.domain.turn import OPEN
from koboshi.ports.store import Store
from koboshi.ports.views import EntryView

_NOT_CONCERNED = {
    Standing.WORKED_ON: "this gateway is working on it",
    Standing.NEXT: "it is in the queue, and nobody has tried it yet",
    Standing.ASKED: "it waits for the person's answer",
    Standing.CLOSED: "it has ended; the person can ask again with /retry",
    Standing.NOT_SERVED: "its person is no longer allowed, or its channel is not configured",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRequests(RowRequests):
    """One request about rows, also to change something."""

    store: Store

    def ways(self) -> dict[str, Callable[[], Awaitable[Answer]]]:
        return {
            # Without arguments, `super` does not find its class where there are slots.
            **RowRequests.ways(self),
            "turn-resume": lambda: self._will(OperatorAction.RESUME),
            "turn-drop": lambda: self._will(OperatorAction.DROP),
            "inbox-retry": self._retry_message,
            "inbox-drop": self._drop_message,
            "outbox-retry": self._retry,
            "outbox-release": self._release,
            "outbox-drop": self._drop,
        }

    async def _will(self, will: OperatorAction) -> Answer:
        number = number_in("turn", self.what)
        if number is None:
            return self.not_found()
        standing = await self.store.turns.will(TurnId(number), will)
        if standing is None:
            return self.not_found()
        if standing is not Standing.LEFT:
            verb = "resumed" if will is OperatorAction.RESUME else "dropped"
            return refusal("refused", f"{self.what} is not {verb}: {_NOT_CONCERNED[standing]}")
        return await self.turn(TurnId(number)) or self.not_found()

    async def _retry_message(self) -> Answer:
        number = number_in("message", self.what)
        retried = None if number is None else await self.store.inbox.retry(EntryId(number))
        if retried is None:
            return self.not_found()
        if retried.entry_id is None:
            return refusal("refused", f"{self.what} is not asked again: {WHY_NOT[retried.how]}")
        again = await self.views.entry(retried.entry_id)
        assert again is not None, "what asks a message again is never forgotten"
        # One that is new may have been answered meanwhile: it is asked all the same.
        fate = None if retried.is_new else await self._over(again)
        if fate is not None:
            words = f"{self.what} was asked again as {shown('message', again.entry_id)}, which "
            return refusal("refused", f"{words}{fate}; `explain` says more of that one")
        return {"ok": True, "message": asdict(again)}

    async def _over(self, entry: EntryView) -> str | None:
        """How a message has ended; None while it waits or its turn is open."""
        if entry.turn_id is None:
            return None if entry.state == EntryState.WAITING else f"was {entry.state}"
        turns = await self.views.turns_named([entry.turn_id])
        state = turns[0].state
        return None if state in OPEN else f"is in {shown('turn', entry.turn_id)}: that is {state}"

    async def _drop_message(self) -> Answer:
        number = number_in("message", self.what)
        if number is None:
            return self.not_found()
        is_dropped = await self.store.inbox.drop(EntryId(number))
        found = await self.views.entry(EntryId(number))
        if found is None:
            return self.not_found()
        if is_dropped:
            return {"ok": True, "message": asdict(found)}
        turn = None if found.turn_id is None else shown("turn", found.turn_id)
        why = why_not_dropped(found.kind, found.state, found.reason, turn)
        return refusal("refused", f"{self.what} is not dropped: {why}")

    async def _retry(self) -> Answer:
        delivery = await self._find_delivery()
        if delivery is None:
            return self.not_found()
        owed = await self.store.outbox.retry(delivery)
        again = None if owed is None else await self.views.delivery(owed)
        if again is None:
            return await self._refused(delivery, "retried")
        if again.state not in UNSETTLED:
            words = f"{self.what} was retried as {shown('delivery', again.delivery_id)}, which was "
            return refusal("refused", f"{words}{again.state}; retry that one if it is needed")
        return {"ok": True, "delivery": asdict(again)}

    async def _drop(self) -> Answer:
        delivery = await self._find_delivery()
        if delivery is None:
            return self.not_found()
        if not await self.store.outbox.drop(delivery):
            return await self._refused(delivery, "dropped")
        return await self.delivery(delivery) or self.not_found()

    async def _release(self) -> Answer:
        """One that is held, or all: then nothing is named."""
        if not self.what:
            return {"ok": True, "released": await self.store.outbox.release(None)}
        delivery = await self._find_delivery()
        if delivery is None:
            return self.not_found()
        if not await self.store.outbox.release(delivery):
            words = f"{self.what} is not released: nothing holds it; `show` says where it is"
            return refusal("refused", words)
        found = await self.views.delivery(delivery)
        return {"ok": True, "released": 1, "delivery": None if found is None else asdict(found)}

    async def _find_delivery(self) -> DeliveryId | None:
        number = number_in("delivery", self.what)
        found = None if number is None else await self.views.delivery(DeliveryId(number))
        return None if found is None else found.delivery_id

    async def _refused(self, delivery_id: DeliveryId, verb: str) -> Answer:
        found = await self.views.delivery(delivery_id)
        state = DeliveryState.SENDING if found is None else found.state
        how = "it is being sent right now" if state == DeliveryState.SENDING else f"it was {state}"
        return refusal("refused", f"{self.what} is not {verb}: {how}")
