"""Outbox to channel: in order within a session, one send at a time, side by side otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import structlog
from anyio import CapacityLimiter, create_task_group, move_on_after, sleep
from anyio.abc import TaskGroup

from koboshi.domain.errors import Fenced
from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, WorkerId
from koboshi.domain.outbox import (
    Delivery,
    DeliveryChange,
    DeliveryLimits,
    Later,
    Resolution,
    SendOutcome,
    Sent,
    Unsure,
    after_send,
    expiry_of,
    held,
    resolution_of,
)
from koboshi.domain.route import Route
from koboshi.ports.channel import Channel
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.ports.wakeups import OUTBOX, Wakeups

log = structlog.get_logger()

POLL_EVERYTHING_SECONDS = 10.0
WAIT_MS_MAX = 60_000
FINISH_LOOK_SECONDS = 0.02


@dataclass(slots=True, kw_only=True)
class Deliver:
    store: Store
    wakeups: Wakeups
    clock: Clock
    channels: Mapping[ChannelName, Channel]
    worker_id: WorkerId
    limits: DeliveryLimits
    in_flight_max: int
    _lanes: dict[str, dict[SessionId, Route]] = field(default_factory=dict)
    """The lanes that are at work, and the sessions each has still to look at."""
    _sending: int = 0
    _is_finishing: bool = False

    async def keep_delivering(self) -> None:
        """Look at what is new at every hint, and at everything now and then, until cancelled."""
        limiter = CapacityLimiter(self.in_flight_max)
        newest = DeliveryId(0)
        looked_at_all = -POLL_EVERYTHING_SECONDS
        async with create_task_group() as sends:
            while True:
                seen = self.wakeups.count(OUTBOX)
                now = self.clock.monotonic()
                everything = now - looked_at_all >= POLL_EVERYTHING_SECONDS
                if everything:
                    looked_at_all = now
                after = DeliveryId(0) if everything else newest
                for delivery_id, session_id, route in await self.store.outbox.due(after):
                    newest = max(newest, delivery_id)
                    self._start(sends, limiter, session_id, route)
                await self.wakeups.wait(OUTBOX, POLL_EVERYTHING_SECONDS, since=seen)

    async def finish(self, seconds: float) -> None:
        """Send what is owed for so long, then begin nothing more, and wait for the sends that are
        under way: one that is cut off may have arrived."""
        with move_on_after(seconds):
            # An answer that was stored a moment ago may not have been looked at yet.
            while self._lanes or await self.store.outbox.due(DeliveryId(0)):
                await self.wakeups.wait(OUTBOX, FINISH_LOOK_SECONDS)
        self._is_finishing = True
        while self._sending:
            await self.wakeups.wait(OUTBOX, FINISH_LOOK_SECONDS)

    def _start(
        self, sends: TaskGroup, limiter: CapacityLimiter, session_id: SessionId, route: Route
    ) -> None:
        """One task per lane; it also takes what comes up while it is at work."""
        channel = self.channels.get(route.channel)
        if channel is None:
            return
        lane = _lane(channel, session_id, route)
        if lane in self._lanes:
            self._lanes[lane][session_id] = route
            return
        self._lanes[lane] = {session_id: route}
        sends.start_soon(self._deliver_lane, limiter, channel, lane)

    async def _deliver_lane(self, limiter: CapacityLimiter, channel: Channel, lane: str) -> None:
        sessions = self._lanes[lane]
        try:
            while sessions:
                await self._deliver_session(limiter, channel, *sessions.popitem())
        finally:
            del self._lanes[lane]

    async def _deliver_session(
        self, limiter: CapacityLimiter, channel: Channel, session_id: SessionId, route: Route
    ) -> None:
        """Send all that is owed. Where it has to wait, the others of its lane wait with it."""
        while True:
            await channel.pace(route)
            async with limiter:
                wait_ms = await self._deliver_next(channel, session_id)
            if wait_ms is None:
                return
            if wait_ms:
                await sleep(min(wait_ms, WAIT_MS_MAX) / 1000)

    async def _deliver_next(self, channel: Channel, session_id: SessionId) -> int | None:
        """Send the oldest that is due. Returns how long the next one has to wait; None if there is
        none."""
        if self._is_finishing:
            return None
        self._sending += 1
        try:
            delivery = await self.store.outbox.claim(session_id, self.worker_id)
            if not isinstance(delivery, Delivery):
                return delivery
            is_owed_more = await self._deliver(channel, delivery)
        except Fenced as fence:
            log.warning("delivery_fenced", reason=str(fence))
            return None
        finally:
            self._sending -= 1
        return 0 if is_owed_more else None

    async def _deliver(self, channel: Channel, delivery: Delivery) -> bool:
        """Returns whether the session is owed more."""
        change: DeliveryChange | None = expiry_of(delivery, self.clock.now_ms(), self.limits)
        if change is None and self._is_to_be_held(channel, delivery):
            change = held("it may have arrived; `koboshi outbox retry` sends it again")
        if change is None:
            delivery, outcome = await self._try(channel, delivery)
            change = after_send(delivery, outcome, self.clock.now_ms(), self.limits)
        is_owed_more = await self.store.outbox.settle(delivery, self.worker_id, change)
        log.debug("delivery_tried", delivery=delivery.delivery_id, change=type(change).__name__)
        return is_owed_more

    async def _try(self, channel: Channel, delivery: Delivery) -> tuple[Delivery, SendOutcome]:
        """Send it, unless it has arrived already. Returns the delivery as it was sent."""
        if not delivery.is_ambiguous:
            return delivery, await self._send(channel, delivery)
        match self._resolution(channel, delivery):
            case Resolution.REPEAT:
                return delivery, await self._send(channel, delivery)
            case Resolution.FIND:
                found = await self._find(channel, delivery)
                if isinstance(found, Sent | Unsure):
                    return delivery, found
                if isinstance(found, Later):
                    # That is certain, so it is not looked for again if this one has to wait.
                    unsent = replace(delivery, is_ambiguous=False)
                    return unsent, await self._send(channel, unsent)
            case Resolution.HOLD | Resolution.LABEL:
                pass
        await self.store.outbox.label(delivery, self.worker_id)
        labelled = replace(delivery, may_be_duplicate=True)
        return labelled, await self._send(channel, labelled)

    def _is_to_be_held(self, channel: Channel, delivery: Delivery) -> bool:
        return delivery.is_ambiguous and self._resolution(channel, delivery) is Resolution.HOLD

    def _resolution(self, channel: Channel, delivery: Delivery) -> Resolution:
        """How its outcome is found out. One that was held and is sent all the same says what it
        is."""
        abilities = channel.abilities
        return resolution_of(
            is_idempotent=abilities.idempotent_send,
            finds_sent=abilities.finds_sent,
            holds=abilities.holds_unsure and not delivery.may_be_duplicate,
        )

    async def _find(self, channel: Channel, delivery: Delivery) -> SendOutcome | None:
        try:
            return await channel.find(delivery, await self.store.outbox.near(delivery))
        except Exception as error:  # nobody knows yet; a second copy would be too early
            log.error("find_failed", delivery=delivery.delivery_id, exc_info=True)
            return Unsure(reason=f"{type(error).__name__}: {error}")

    async def _send(self, channel: Channel, delivery: Delivery) -> SendOutcome:
        try:
            return await channel.send(delivery)
        except Exception as error:  # nobody knows how far it got
            log.error("send_failed", delivery=delivery.delivery_id, exc_info=True)
            return Unsure(reason=f"{type(error).__name__}: {error}")


def _lane(channel: Channel, session_id: SessionId, route: Route) -> str:
    """What must not be sent side by side: a session, and where a platform can not tell repeats
    apart, a whole chat, so that at most one send in it is ever of unknown outcome."""
    if channel.abilities.idempotent_send:
        return f"session:{session_id}"
    return f"{route.channel}/{route.chat}"
