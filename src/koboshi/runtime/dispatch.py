"""Queued turns to claimed turns."""

from dataclasses import dataclass, field

from anyio import create_task_group
from anyio.abc import TaskGroup

from koboshi.domain.ids import WorkerId
from koboshi.domain.slots import NO_ROOM, FreeSlots, room_for
from koboshi.domain.turn import Claim
from koboshi.ports.store import Store
from koboshi.ports.wakeups import TURNS, Wakeups
from koboshi.runtime.drain import Drain
from koboshi.runtime.slots import Slot, Slots
from koboshi.runtime.turn import TurnRunner


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
    running: int = field(default=0, init=False)
    """Open turns: claimed by this gateway, whether they hold a slot or not."""
    recovered: int = field(default=0, init=False)
    """How many of these are recovered turns."""

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
        if self.drain.is_begun:
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

    async def _run(self, claim: Claim, slot: Slot) -> None:
        try:
            await self.runner.run(claim, slot)
        finally:
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
