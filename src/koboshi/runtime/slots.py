"""The slots of one gateway: who holds one, who waits for one, and which commands run.

Nothing here is needed after a crash: a new process begins with no turn claimed, and which commands
run is read from the store.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from anyio import Event, Lock

from koboshi.domain.ids import CallId, TurnId
from koboshi.domain.slots import FreeSlots, ToQueue, ToTurn, next_grant, room_for, within
from koboshi.domain.turn import Claim
from koboshi.ports.store import Processes
from koboshi.ports.tool import Load
from koboshi.ports.wakeups import PROCESSES, TURNS, Wakeups


@dataclass(slots=True, kw_only=True)
class CommandSlots:
    """How many foreground commands run at once, over all turns.

    A command counts from before its start is committed until its call is over, and for as long as
    its process has no stored end. The second counts commands of an earlier boot, and those that
    were stopped and have not ended yet.
    """

    processes: Processes
    wakeups: Wakeups
    commands_max: int
    poll_seconds: float
    held: set[tuple[TurnId, CallId]] = field(default_factory=set)
    is_closed: bool = False
    door: Lock = field(default_factory=Lock)
    """It keeps the order: one command waits for a free slot, the others wait behind it."""

    async def take(self, turn_id: TurnId, call_id: CallId) -> bool:
        """Wait for a slot for a command that was not started. False if this gateway will have none:
        the command is left as it is."""
        async with self.door:
            while not self.is_closed:
                seen = self.wakeups.count(PROCESSES)
                running = self.held | await self.processes.commands_running()
                if len(running) < self.commands_max:
                    self.held.add((turn_id, call_id))
                    return True
                await self.wakeups.wait(PROCESSES, self.poll_seconds, since=seen)
        return False

    def take_up(self, turn_id: TurnId, call_id: CallId) -> None:
        """Count a command that was started before: it already runs, so it does not wait."""
        self.held.add((turn_id, call_id))

    def give_back(self, turn_id: TurnId, call_id: CallId) -> None:
        self.held.discard((turn_id, call_id))
        if self.door.locked():
            self.wakeups.hint(PROCESSES)

    def close(self) -> None:
        """No more commands are started, so none waits for a slot."""
        if not self.is_closed:
            self.is_closed = True
            self.wakeups.hint(PROCESSES)


@dataclass(slots=True, kw_only=True)
class Slots:
    """The slots for computing turns. Every change ends with `_grant`, so a slot is never free while
    a turn that may have it waits."""

    slots_max: int
    wakeups: Wakeups | None = None
    commands: CommandSlots | None = None
    held: int = 0
    """Slots of turns, and slots reserved while turns are claimed."""
    recovered: int = 0
    line: list["Slot"] = field(default_factory=list)
    """Turns that wait for a slot, the longest waiting first."""
    queue_waits: bool = False
    """Whether there may be queued turns that found no slot."""
    queue_was_last: bool = False
    promised: int = 0
    """Slots that wait for the dispatcher to come and claim a turn."""
    is_closed: bool = False

    def set_aside(self, at_most: FreeSlots) -> FreeSlots:
        """Take the free slots, for turns that are claimed next; `settle` gives back the rest."""
        self.held -= self.promised
        self.promised = 0
        room = within(room_for(self.slots_max, held=self.held, recovered=self.recovered), at_most)
        self.queue_waits = not room.turns and at_most.turns > 0
        self.held += room.turns
        self.recovered += room.recovered
        return room

    def settle(self, aside: FreeSlots, claims: Sequence[Claim]) -> list["Slot"]:
        """Each claimed turn holds a slot from here on."""
        self.held -= aside.turns - len(claims)
        self.recovered -= aside.recovered - sum(claim.is_recovered for claim in claims)
        made = [Slot(slots=self, is_recovered=claim.is_recovered) for claim in claims]
        self._grant()
        return made

    def line_up(self, slot: "Slot") -> None:
        self.line.append(slot)
        self._grant()

    def free(self, *, is_recovered: bool) -> None:
        self.held -= 1
        self.recovered -= is_recovered
        self._grant()
        if is_recovered and self.wakeups is not None:
            self.wakeups.hint(TURNS)  # another recovered turn may have waited for its share

    def close(self) -> None:
        """The gateway shuts down: a turn that waits for a slot goes on without one, to give its
        claim back; so does a command that was not started."""
        self.is_closed = True
        self.queue_waits = False
        while self.line:
            self.line.pop(0).go_on.set()
        if self.commands is not None:
            self.commands.close()

    def _grant(self) -> None:
        while True:
            grant = next_grant(
                [slot.is_recovered for slot in self.line],
                room_for(self.slots_max, held=self.held, recovered=self.recovered),
                queue_waits=self.queue_waits,
                queue_was_last=self.queue_was_last,
            )
            match grant:
                case ToTurn(place=place):
                    self.queue_was_last = False
                    self.line.pop(place).receive()
                case ToQueue():
                    # It is kept until the dispatcher comes, which is awake from now on.
                    self.queue_was_last, self.queue_waits = True, False
                    self.held += 1
                    self.promised += 1
                    if self.wakeups is not None:
                        self.wakeups.hint(TURNS)
                case None:
                    return


@dataclass(slots=True, kw_only=True, eq=False)
class Slot:
    """The slot of one claimed turn: the turn holds it, waits for it, or has given it back."""

    slots: Slots
    is_recovered: bool
    is_held: bool = True
    go_on: Event = field(default_factory=Event)
    working: int = 0
    """Running calls that compute."""
    waiting: int = 0
    """Running calls that only wait."""

    @property
    def is_closed(self) -> bool:
        """Whether the gateway shuts down: nothing more is started."""
        return self.slots.is_closed

    async def take(self) -> None:
        """Hold the slot, once it is this turn's turn. During a shutdown it returns at once, without
        a slot."""
        if self.is_held or self.is_closed:
            return
        if self not in self.slots.line:
            self.go_on = Event()
            self.slots.line_up(self)
        await self.go_on.wait()

    def receive(self) -> None:
        """Called by the code that took this turn out of the line."""
        self.is_held = True
        self.slots.held += 1
        self.slots.recovered += self.is_recovered
        self.go_on.set()

    def give_back(self) -> None:
        if self.is_held:
            self.is_held = False
            self.slots.free(is_recovered=self.is_recovered)

    def leave(self) -> None:
        """The turn is over, for good or for now."""
        if self in self.slots.line:
            self.slots.line.remove(self)
        self.give_back()

    async def begin_calls(self, loads: Iterable[Load]) -> None:
        """These calls are about to run side by side."""
        for load in loads:
            self._count(load, 1)
        await self._fit()

    async def go_on_with(self, *, ended: Load, begun: Load | None) -> None:
        """A call is over, and another one may follow it."""
        self._count(ended, -1)
        if begun is not None:
            self._count(begun, 1)
        await self._fit()

    @asynccontextmanager
    async def command(
        self, claim: Claim, call_id: CallId, *, is_started: bool
    ) -> AsyncIterator[bool]:
        """Count a foreground command for the length of the block. False if this gateway must not
        start it."""
        commands = self.slots.commands
        if commands is None:
            yield True
            return
        if is_started:
            commands.take_up(claim.turn_id, call_id)
        elif not await commands.take(claim.turn_id, call_id):
            yield False
            return
        try:
            yield True
        finally:
            commands.give_back(claim.turn_id, call_id)

    def _count(self, load: Load, change: int) -> None:
        if load is Load.WORK:
            self.working += change
        else:
            self.waiting += change

    async def _fit(self) -> None:
        """Hold the slot while a call computes; give it back while all of them only wait. When no
        call is left it stays as it is: the next thing may be a request to the model."""
        if self.working:
            await self.take()
        elif self.waiting:
            self.give_back()


def lone_slot() -> Slot:
    """A slot that no other turn competes for."""
    return Slot(slots=Slots(slots_max=1, held=1), is_recovered=False)
