"""What an operator does to rows."""

from dataclasses import dataclass

from koboshi.control.replies import DeliveryShown, Done, MessageShown, Refusal, Released, refusal
from koboshi.control.requests import (
    ChangeRow,
    DropDelivery,
    DropMessage,
    DropTurn,
    ReleaseDelivery,
    ResumeTurn,
    RetryDelivery,
    RetryMessage,
)
from koboshi.control.rows import RowViews, not_found, number_in
from koboshi.domain.command import ActionStanding, OperatorAction
from koboshi.domain.ids import DeliveryId, EntryId, TurnId, shown
from koboshi.domain.inbox import EntryState
from koboshi.domain.outbox import UNSETTLED, DeliveryState
from koboshi.domain.retry import WHY_NOT, why_not_dropped
from koboshi.domain.standing import WORKED_ON
from koboshi.domain.turn import OPEN
from koboshi.ports.store import Store
from koboshi.ports.views import EntryView, OwnerViews

_NOT_CONCERNED = {
    ActionStanding.WORKED_ON: WORKED_ON,
    ActionStanding.NEXT: "it is in the queue and was not tried yet",
    ActionStanding.ASKED: "it waits for the person's answer",
    ActionStanding.CLOSED: "it has ended; the person can ask again with /retry",
    ActionStanding.NOT_SERVED: "its person is no longer allowed, or its channel is not configured",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One request to change a row, which is named as people are shown it."""

    store: Store
    request: ChangeRow

    @property
    def what(self) -> str:
        return self.request.what

    @property
    def views(self) -> OwnerViews:
        return self.store.views

    async def answer(self) -> Done:
        match self.request:
            case ResumeTurn():
                return await self._will(OperatorAction.RESUME)
            case DropTurn():
                return await self._will(OperatorAction.DROP)
            case RetryMessage(anew=wants_anew):
                return await self._retry_message(wants_anew=wants_anew)
            case DropMessage():
                return await self._drop_message()
            case RetryDelivery():
                return await self._retry()
            case ReleaseDelivery():
                return await self._release()
            case DropDelivery():
                return await self._drop()
            case other:
                raise AssertionError(f"nothing changes a row as {type(other).__name__}")

    async def _will(self, will: OperatorAction) -> Done:
        number = number_in("turn", self.what)
        if number is None:
            return self._not_found()
        standing = await self.store.turns.will(TurnId(number), will)
        if standing is None:
            return self._not_found()
        if standing is not ActionStanding.LEFT:
            verb = "resumed" if will is OperatorAction.RESUME else "dropped"
            return refusal("refused", f"{self.what} is not {verb}: {_NOT_CONCERNED[standing]}")
        return await RowViews(views=self.views).turn(TurnId(number)) or self._not_found()

    async def _retry_message(self, *, wants_anew: bool) -> Done:
        number = number_in("message", self.what)
        retried = None
        if number is not None:
            retried = await self.store.inbox.retry(EntryId(number), wants_anew=wants_anew)
        if retried is None:
            return self._not_found()
        if retried.entry_id is None:
            return refusal("refused", f"{self.what} is not asked again: {WHY_NOT[retried.how]}")
        again = await self.views.entry(retried.entry_id)
        assert again is not None, "what asks a message again is never forgotten"
        # One that is new may have been answered meanwhile: it is asked all the same.
        fate = None if retried.is_new else await self._over(again)
        if fate is not None:
            words = f"{self.what} was asked again as {shown('message', again.entry_id)}, which "
            return refusal("refused", f"{words}{fate}; `explain` says more of that one")
        return MessageShown(message=again)

    async def _over(self, entry: EntryView) -> str | None:
        """How a message has ended; None while it waits or its turn is open."""
        if entry.turn_id is None:
            return None if entry.state == EntryState.WAITING else f"was {entry.state}"
        turns = await self.views.turns_named([entry.turn_id])
        state = turns[0].state
        return None if state in OPEN else f"is in {shown('turn', entry.turn_id)}: that is {state}"

    async def _drop_message(self) -> Done:
        number = number_in("message", self.what)
        if number is None:
            return self._not_found()
        is_dropped = await self.store.inbox.drop(EntryId(number))
        found = await self.views.entry(EntryId(number))
        if found is None:
            return self._not_found()
        if is_dropped:
            return MessageShown(message=found)
        turn = None if found.turn_id is None else shown("turn", found.turn_id)
        why = why_not_dropped(found.kind, found.state, found.reason, turn)
        return refusal("refused", f"{self.what} is not dropped: {why}")

    async def _retry(self) -> Done:
        delivery = await self._find_delivery()
        if delivery is None:
            return self._not_found()
        owed = await self.store.outbox.retry(delivery)
        again = None if owed is None else await self.views.delivery(owed)
        if again is None:
            return await self._refused(delivery, "retried")
        if again.state not in UNSETTLED:
            words = f"{self.what} was retried as {shown('delivery', again.delivery_id)}, which was "
            return refusal("refused", f"{words}{again.state}; retry that one if it is needed")
        return DeliveryShown(delivery=again)

    async def _drop(self) -> Done:
        delivery = await self._find_delivery()
        if delivery is None:
            return self._not_found()
        if not await self.store.outbox.drop(delivery):
            return await self._refused(delivery, "dropped")
        return await RowViews(views=self.views).delivery(delivery) or self._not_found()

    async def _release(self) -> Done:
        """One that is held, or all: then nothing is named."""
        if not self.what:
            return Released(released=await self.store.outbox.release(None))
        delivery = await self._find_delivery()
        if delivery is None:
            return self._not_found()
        if not await self.store.outbox.release(delivery):
            words = f"{self.what} is not released: nothing holds it; `show` says where it is"
            return refusal("refused", words)
        found = await self.views.delivery(delivery)
        return Released(released=1, delivery=found)

    async def _find_delivery(self) -> DeliveryId | None:
        number = number_in("delivery", self.what)
        found = None if number is None else await self.views.delivery(DeliveryId(number))
        return None if found is None else found.delivery_id

    async def _refused(self, delivery_id: DeliveryId, verb: str) -> Done:
        found = await self.views.delivery(delivery_id)
        state = DeliveryState.SENDING if found is None else found.state
        how = "it is being sent right now" if state == DeliveryState.SENDING else f"it was {state}"
        return refusal("refused", f"{self.what} is not {verb}: {how}")

    def _not_found(self) -> Refusal:
        return not_found(self.request.kind, self.what)
