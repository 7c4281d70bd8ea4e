"""Queued turns to claimed turns."""

from dataclasses import dataclass

from anyio import create_task_group
from anyio.abc import TaskGroup

from koboshi.domain.ids import WorkerId
from koboshi.domain.places import NO_ROOM, Room, room_for
from koboshi.domain.turn import Claim
from koboshi.ports.store import Store
from koboshi.ports.wakeups import TURNS, Wakeups
from koboshi.runtime.drain import Drain
from koboshi.runtime.turn import TurnRunner


@dataclass(slots=True, kw_only=True)
class Dispatch:
    store: Store
    wakeups: Wakeups
    runner: TurnRunner
    worker_id: WorkerId
    turns_max: int
    poll_seconds: float
    drain: Drain
    running: int = 0
    recovered: int = 0
    """How many of the running turns were taken up again."""

    async def keep_dispatching(self) -> None:
        """Claim what is due and run it, at most so many turns at once, until cancelled: then every
        running turn gives its claim back."""
        async with create_task_group() as turns:
            while True:
                seen = self.wakeups.count(TURNS)
                room = self._room()
                claims = await self._claim(room) if room.turns else ()
                for claim in claims:
                    self._start(turns, claim)
                if not claims:
                    await self.wakeups.wait(TURNS, await self._pause(room), since=seen)

    def _room(self) -> Room:
        if self.drain.is_begun:
            return NO_ROOM
        return room_for(self.turns_max, running=self.running, recovered=self.recovered)

    async def _claim(self, room: Room) -> tuple[Claim, ...]:
        return await self.store.turns.claim(
            self.worker_id, room.turns, recovered_max=room.recovered
        )

    def _start(self, turns: TaskGroup, claim: Claim) -> None:
        self.running += 1
        self.recovered += claim.is_recovered
        turns.start_soon(self._run, claim)

    async def _run(self, claim: Claim) -> None:
        try:
            await self.runner.run(claim)
        finally:
            self.running -= 1
            self.recovered -= claim.is_recovered
            self.wakeups.hint(TURNS)

    async def _pause(self, room: Room) -> float:
        """How long there can be nothing to do: a turn that backs off is due in a while. One that
        there is no room for is looked at when another ends."""
        if not room.turns:
            return self.poll_seconds
        due_in_ms = await self.store.turns.due_in_ms(with_recovered=room.recovered > 0)
        if due_in_ms is None:
            return self.poll_seconds
        return min(self.poll_seconds, max(due_in_ms, 20) / 1000)
