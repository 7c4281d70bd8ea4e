"""Outbox to channel: in order within a session, one send at a time, side by side otherwise.

Theory of operation. A delivery is sent between two commits: `claim` makes it SENDING under this
worker before the first byte leaves, `settle` stores what became of it. A crash in between leaves
SENDING under a worker that is gone, which means: it may have arrived. So at every moment a row
says what is known about the platform, and nothing in memory is needed to go on.

* What may have arrived is never simply sent again. `_try` first does what the channel can: repeat
  under the same key, look for it, hold it for the operator, or send it with a label. What begins a
  topic is not repeated at all: the platform tells of it, or it is given up.
* Order is the store's: `claim` gives the oldest delivery of a session, so a part cannot overtake
  an earlier one even if two tasks looked at the same session.
* Every decision about time, repeats and giving up is `after_send` in `domain/outbox.py`. This
  module only sends, and stores the change that it was told.
* Hints may be lost. Every ten seconds everything is looked at, so a lost hint costs time and never
  a delivery.

A *lane* is what must not be sent side by side: a session, and where a platform cannot tell repeats
apart, a whole chat. A lane never sleeps. A session whose next delivery is not due leaves its lane
and comes back at its time, so the other sessions of the chat go on. All times are in the database;
the memory holds only when to look again. Each channel has its own limit of running sends: a
platform that hangs delays no other.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

import structlog
from anyio import CapacityLimiter, create_task_group, move_on_after
from anyio.abc import TaskGroup

from koboshi.domain.errors import Fenced
from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, WorkerId
from koboshi.domain.outbox import (
    Delivery,
    DeliveryChange,
    DeliveryLimits,
    GivenUp,
    Later,
    Resolution,
    SendOutcome,
    Sent,
    Unsure,
    after_send,
    held,
    resolution_of,
)
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.route import Route
from koboshi.domain.threads import of_awaited
from koboshi.ports.channel import Channel
from koboshi.ports.clock import Clock
from koboshi.ports.files import NO_SHELF, FileShelf
from koboshi.ports.outbox import Due
from koboshi.ports.store import Store
from koboshi.ports.wakeups import OUTBOX, OUTBOX_SOONER, Wakeups
from koboshi.runtime.trust import Trust

log = structlog.get_logger()

POLL_EVERYTHING_SECONDS = 10.0
FINISH_LOOK_SECONDS = 0.02
NO_TRUST = "not sent: the gateway was not sure of its claims"


@dataclass(slots=True)
class Alarms:
    """When to look again at sessions whose next delivery is not due yet."""

    _times: dict[SessionId, tuple[float, Route]] = field(default_factory=dict)
    _heap: list[tuple[float, SessionId]] = field(default_factory=list)

    def set(self, session_id: SessionId, route: Route, at: float) -> None:
        """The earlier of two times counts."""
        known = self._times.get(session_id)
        if known is None or at < known[0]:
            self._times[session_id] = (at, route)
            heappush(self._heap, (at, session_id))

    def clear(self) -> None:
        self._times.clear()
        self._heap.clear()

    def take_due(self, now: float) -> list[tuple[SessionId, Route]]:
        """The sessions whose time has come."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, session_id = heappop(self._heap)
            known = self._times.get(session_id)
            if known is not None and known[0] == at:
                del self._times[session_id]
                found.append((session_id, known[1]))
        if len(self._heap) > 2 * len(self._times) + 64:
            self._heap = [(at, session_id) for session_id, (at, _) in self._times.items()]
            heapify(self._heap)
        return found

    def seconds_left(self, now: float, at_most: float) -> float:
        return min(at_most, max(0.0, self._heap[0][0] - now)) if self._heap else at_most


@dataclass(slots=True, kw_only=True)
class Deliver:
    store: Store
    wakeups: Wakeups
    clock: Clock
    channels: Mapping[ChannelName, Channel]
    worker_id: WorkerId
    limits: DeliveryLimits
    in_flight_max: int
    """Sends under way at once, of each channel."""
    trust: Trust = field(default_factory=Trust)
    poll_seconds: float = POLL_EVERYTHING_SECONDS
    """Between two looks at everything."""
    looks_at_all: bool = False
    """Whether a look behind the newest delivery could miss one: other nodes store them, too."""
    shelf: FileShelf = NO_SHELF
    owns: Callable[[ChannelName], bool] = lambda _: True
    """Whether this gateway sends on a channel."""
    _limiters: dict[ChannelName, CapacityLimiter] = field(default_factory=dict)
    _lanes: dict[str, dict[SessionId, Route]] = field(default_factory=dict)
    """The active lanes, and the sessions that each still has to look at."""
    _alarms: Alarms = field(default_factory=Alarms)
    _down: set[ChannelName] = field(default_factory=set)
    """Channels that were not up at the last look."""
    _sending: int = 0
    _under_way: set[DeliveryId] = field(default_factory=set)
    """What a task of ours sends."""
    _on_channel: Counter[ChannelName] = field(default_factory=Counter)
    _is_finishing: bool = False

    async def keep_delivering(self) -> None:
        """Look at what is new at every hint, at what is due at its time, and at everything now and
        then, until cancelled."""
        newest = DeliveryId(0)
        looked_at_all = -self.poll_seconds
        sooner = self.wakeups.count(OUTBOX_SOONER)
        self._down = set(self.channels)
        async with create_task_group() as sends:
            while True:
                seen = self.wakeups.count(OUTBOX)
                is_back = await self._look_for_returns()
                now = self.clock.monotonic()
                is_time = now - looked_at_all >= self.poll_seconds
                everything = is_back or is_time or self.looks_at_all
                if self.wakeups.count(OUTBOX_SOONER) != sooner:
                    sooner, everything = self.wakeups.count(OUTBOX_SOONER), True
                if everything:
                    looked_at_all = now
                found = await self.store.outbox.due(DeliveryId(0) if everything else newest)
                newest = max((newest, *(due.delivery_id for due in found)))
                self._take_up(sends, found, everything=everything)
                left = self._alarms.seconds_left(self.clock.monotonic(), self.poll_seconds)
                await self.wakeups.wait(OUTBOX, left, since=seen)

    async def finish(self, seconds: float) -> None:
        """Send due deliveries for so long, then start no more, and wait for the running sends: one
        that is cut off may have arrived."""
        with move_on_after(seconds):
            # An answer stored a moment ago may not have been seen yet.
            while self._lanes or await self._is_anything_due():
                await self.wakeups.wait(OUTBOX, FINISH_LOOK_SECONDS)
        self._is_finishing = True
        while self._sending:
            await self.wakeups.wait(OUTBOX, FINISH_LOOK_SECONDS)

    async def _is_anything_due(self) -> bool:
        return any(self._due_in_ms(due) == 0 for due in await self.store.outbox.due(DeliveryId(0)))

    async def _look_for_returns(self) -> bool:
        """Make deliveries of a channel that came back due now. Returns whether a channel did."""
        down = {
            name
            for name, channel in self.channels.items()
            if channel.trouble is not None or not self.owns(name)
        }
        returned, self._down = self._down - down, down
        for name in sorted(returned):
            hastened = await self.store.outbox.hasten(name)
            if hastened:
                log.info("deliveries_hastened", channel=name, count=hastened)
        return bool(returned)

    def _take_up(self, sends: TaskGroup, found: tuple[Due, ...], *, everything: bool) -> None:
        """Start what is due, and set an alarm for what is not. A look at everything knows all
        times."""
        now = self.clock.monotonic()
        if everything:
            self._alarms.clear()
        for due in found:
            wait_ms = self._due_in_ms(due)
            if wait_ms == 0:
                self._start(sends, due.session_id, due.route)
            elif wait_ms is not None:
                self._alarms.set(due.session_id, due.route, now + wait_ms / 1000)
        for session_id, route in self._alarms.take_due(now):
            self._start(sends, session_id, route)

    def _due_in_ms(self, due: Due) -> int | None:
        channel = self.channels.get(due.route.channel)
        if channel is None or not self.owns(channel.name):
            return None
        return due.due_in_ms(is_up=channel.trouble is None)

    def _start(self, sends: TaskGroup, session_id: SessionId, route: Route) -> None:
        """One task per lane; it also takes sessions that come up while it runs."""
        channel = self.channels.get(route.channel)
        if channel is None or not self.owns(channel.name) or not self.trust.is_held:
            return
        lane = _lane(channel, session_id, route)
        if lane in self._lanes:
            self._lanes[lane][session_id] = route
            return
        self._lanes[lane] = {session_id: route}
        sends.start_soon(self._deliver_lane, channel, lane)

    async def _deliver_lane(self, channel: Channel, lane: str) -> None:
        """Send what is due to the sessions of a lane, one delivery of each in turn."""
        sessions = self._lanes[lane]
        limiter = self._limiters.setdefault(channel.name, CapacityLimiter(self.in_flight_max))
        try:
            while sessions:
                session_id = next(iter(sessions))
                route = sessions.pop(session_id)
                await channel.pace(route)
                async with limiter:
                    wait_ms = await self._deliver_next(channel, session_id)
                if wait_ms:
                    self._look_later(session_id, route, wait_ms)
                elif wait_ms is not None:
                    sessions[session_id] = route
        finally:
            del self._lanes[lane]

    def _look_later(self, session_id: SessionId, route: Route, wait_ms: int) -> None:
        self._alarms.set(session_id, route, self.clock.monotonic() + wait_ms / 1000)
        self.wakeups.hint(OUTBOX)

    async def _deliver_next(self, channel: Channel, session_id: SessionId) -> int | None:
        """Send the oldest that is due. Returns how long the next one has to wait; None if there is
        none."""
        if self._is_finishing or not self.trust.is_held or not self.owns(channel.name):
            return None
        self._sending += 1
        try:
            delivery = await self.store.outbox.claim(
                session_id,
                self.worker_id,
                is_up=channel.trouble is None,
                limits=self.limits,
            )
            if isinstance(delivery, GivenUp):
                _tell_operator(delivery)
                return 0
            if not isinstance(delivery, Delivery):
                return delivery
            self._under_way.add(delivery.delivery_id)
            self._on_channel[channel.name] += 1
            try:
                is_owed_more = await self._deliver(channel, delivery)
            finally:
                self._under_way.discard(delivery.delivery_id)
                self._on_channel[channel.name] -= 1
        except Fenced as fence:
            log.warning("delivery_fenced", reason=str(fence))
            return None
        finally:
            self._sending -= 1
        return 0 if is_owed_more else None

    async def _deliver(self, channel: Channel, delivery: Delivery) -> bool:
        """Returns whether the session is owed more."""
        change: DeliveryChange
        if self._is_to_be_held(channel, delivery):
            change = held("it may have arrived; `koboshi outbox retry` sends it again")
        else:
            delivery, outcome = await self._try(channel, delivery)
            change = after_send(delivery, outcome, self.limits)
        is_owed_more = await self.store.outbox.settle(delivery, self.worker_id, change)
        log.debug("delivery_tried", delivery=delivery.delivery_id, change=type(change).__name__)
        return is_owed_more

    async def _try(self, channel: Channel, delivery: Delivery) -> tuple[Delivery, SendOutcome]:
        """Send it, unless it has arrived already. Before each repeat, a send of unknown outcome is
        looked for; any copy found counts as the delivery. Returns the delivery as it was sent."""
        if not delivery.is_ambiguous:
            return delivery, await self._send(channel, delivery)
        is_absent = False
        match self._resolution(channel, delivery):
            case Resolution.REPEAT:
                return delivery, await self._send(channel, delivery)
            case Resolution.AWAIT:
                thread = await self.store.schedules.thread_begun_by(delivery)
                return delivery, of_awaited(delivery, thread)
            case Resolution.FIND:
                found = await self._find(channel, delivery)
                if isinstance(found, Sent):
                    return delivery, found
                if isinstance(found, Unsure):
                    # A failed look says nothing about the message: it is no strike against it.
                    return delivery, replace(found, was_sent=False)
                is_absent = isinstance(found, Later)
            case Resolution.HOLD | Resolution.LABEL:
                pass
        # It was looked for once, so it is not again unless this send has an unknown outcome, too. A
        # copy of a message that certainly did not arrive is no duplicate.
        known = replace(delivery, is_ambiguous=False, may_be_duplicate=not is_absent)
        if known.may_be_duplicate != delivery.may_be_duplicate:
            await self.store.outbox.label(
                delivery, self.worker_id, may_be_duplicate=known.may_be_duplicate
            )
        return known, await self._send(channel, known)

    def _is_to_be_held(self, channel: Channel, delivery: Delivery) -> bool:
        return delivery.is_ambiguous and self._resolution(channel, delivery) is Resolution.HOLD

    def _resolution(self, channel: Channel, delivery: Delivery) -> Resolution:
        """How an unknown outcome is resolved."""
        abilities = channel.abilities
        return resolution_of(
            is_idempotent=abilities.idempotent_send,
            finds_sent=abilities.finds_sent,
            holds=abilities.holds_unsure,
            begins_once=abilities.begins_once and delivery.begins_thread,
            age_ms=delivery.age_ms,
            repeat_within_ms=abilities.repeat_within_ms,
        )

    async def _find(self, channel: Channel, delivery: Delivery) -> SendOutcome | None:
        try:
            return await channel.find(delivery, await self.store.outbox.near(delivery))
        except Exception as error:  # still unknown: too early for a second copy
            log.error("find_failed", delivery=delivery.delivery_id, exc_info=True)
            is_lack = shortage_in(error) is not None
            return Unsure(reason=f"{type(error).__name__}: {error}", is_lack=is_lack)

    def sends_on(self, name: ChannelName) -> int:
        """How many sends are under way on a channel."""
        return self._on_channel[name]

    async def let_go(self) -> None:
        """The trust is back: what is being sent by us, and by no task of ours, may have arrived."""
        left = await self.store.outbox.let_go(self.worker_id, frozenset(self._under_way))
        if left:
            log.warning("deliveries_let_go", count=left)

    async def _send(self, channel: Channel, delivery: Delivery) -> SendOutcome:
        if delivery.file is not None:
            await self.shelf.bring(delivery.file.path)
        if not self.trust.is_held:
            return Later(wait_ms=0, reason=NO_TRUST)
        try:
            return await channel.send(delivery)
        except Exception as error:  # unknown how far it got
            log.error("send_failed", delivery=delivery.delivery_id, exc_info=True)
            return Unsure(reason=f"{type(error).__name__}: {error}")


def _tell_operator(given_up: GivenUp) -> None:
    tell = log.error if given_up.is_told else log.info
    tell(
        "delivery_given_up",
        delivery=given_up.delivery_id,
        channel=given_up.route.channel,
        chat=given_up.route.chat,
        reason=given_up.reason,
    )


def _lane(channel: Channel, session_id: SessionId, route: Route) -> str:
    """A session, and where a platform cannot tell repeats apart, a whole chat: while one send in it
    is looked for, no other may be under way."""
    if channel.abilities.idempotent_send:
        return f"session:{session_id}"
    return f"{route.channel}/{route.chat}"
