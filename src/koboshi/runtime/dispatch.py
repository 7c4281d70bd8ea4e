"""Queued turns to claimed turns."""

from dataclasses import dataclass, field

import structlog
from anyio import CancelScope, create_task_group
from anyio.abc import TaskGroup

from koboshi.domain.errors import Fenced
from koboshi.domain.ids import WorkerId
from koboshi.domain.slots import NO_ROOM, FreeSlots, room_for
from koboshi.domain.turn import Claim
from koboshi.ports.store import Store
from koboshi.ports.wakeups import TURNS, Wakeups
from koboshi.runtime.drain import Drain
from koboshi.runtime.slots import Slot, Slots
from koboshi.runtime.trust import Trust
from koboshi.runtime.turn import TurnRunner

log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class Dispatch:
    store: Store
    wakeups: Wakeups
    runner: TurnRunner
    worker_id: WorkerId
    slots: Slots
    """For computing turns."""
    open_turns_max: int
    """Computing turns and waiting turns together."""
    poll_seconds: float
    drain: Drain
    trust: Trust = field(default_factory=Trust)
    running: int = field(default=0, init=False)
    """Open turns: claimed by this gateway, whether they hold a slot or not."""
    recovered: int = field(default=0, init=False)
    """How many of these are recovered turns."""
    _scopes: dict[Claim, CancelScope] = field(default_factory=dict, init=False)
    _set_down: list[Claim] = field(default_factory=list, init=False)
    """Claims whose work was cancelled without trust: no task works on them."""

    async def keep_dispatching(self) -> None:
        """Claim and run due turns, within the bounds, until cancelled: then every running turn
        gives its claim back."""
        async with create_task_group() as turns:
            while True:
                seen = self.wakeups.count(TURNS)
                if self.drain.ends_steps:
                    self.slots.close()
                room, claims = await self._claim(turns)
                if not claims:
                    await self.wakeups.wait(TURNS, await self._pause(room), since=seen)

    def _open_room(self) -> FreeSlots:
        if self.drain.is_begun or not self.trust.is_held:
            return NO_ROOM
        return room_for(self.open_turns_max, held=self.running, recovered=self.recovered)

    async def _claim(self, turns: TaskGroup) -> tuple[FreeSlots, tuple[Claim, ...]]:
        """Claim as many turns as there is room for. Their slots are reserved meanwhile, so that no
        other turn takes them."""
        room = self.slots.set_aside(self._open_room())
        claims: tuple[Claim, ...] = ()
        try:
            if room.turns:
                claims = await self.store.turns.claim(
                    self.worker_id, room.turns, recovered_max=room.recovered
                )
        finally:
            slots = self.slots.settle(room, claims)
        for claim, slot in zip(claims, slots, strict=True):
            self._start(turns, claim, slot)
        return room, claims

    def _start(self, turns: TaskGroup, claim: Claim, slot: Slot) -> None:
        self.running += 1
        self.recovered += claim.is_recovered
        turns.start_soon(self._run, claim, slot)

    def set_down(self) -> None:
        """The trust is lost: all work ends, and no claim is given back."""
        for scope in self._scopes.values():
            scope.cancel()

    async def release(self) -> None:
        """The trust is back: give back what was set down, and is still ours."""
        while self._set_down:
            claim = self._set_down.pop()
            try:
                await self.store.turns.release(claim)
            except Fenced as fence:
                log.info("turn_not_released", turn=claim.turn_id, reason=str(fence))
            else:
                log.info("turn_released", turn=claim.turn_id, reason="trust was lost")

    async def _run(self, claim: Claim, slot: Slot) -> None:
        scope = self._scopes[claim] = CancelScope()
        try:
            with scope:
                await self.runner.run(claim, slot)
            if scope.cancelled_caught:
                self._set_down.append(claim)
                if self.trust.is_held:  # it came back while the work was still ending
                    await self.release()
        finally:
            del self._scopes[claim]
            slot.leave()
            self.running -= 1
            self.recovered -= claim.is_recovered
            self.wakeups.hint(TURNS)

    async def _pause(self, room: FreeSlots) -> float:
        """How long there can be nothing to do: until a turn that backs off is due. A turn without
        room is looked at when a slot is free, or when another turn ends."""
        if not room.turns:
            return self.poll_seconds
        due_in_ms = await self.store.turns.due_in_ms(with_recovered=room.recovered > 0)
        if due_in_ms is None:
            return self.poll_seconds
        return min(self.poll_seconds, max(due_in_ms, 20) / 1000)
