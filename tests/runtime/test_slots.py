"""Slots: which turns compute, which wait, and that none waits for ever."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from anyio import Event, create_task_group, sleep

from koboshi.domain.ids import Epoch, Generation, SessionId, TurnId, WorkerId
from koboshi.domain.slots import FreeSlots, slots_kept
from koboshi.domain.turn import Claim
from koboshi.ports.tool import Load
from koboshi.runtime.slots import Slot, Slots, lone_slot
from tests.harness.polling import until

WIDE = FreeSlots(turns=10_000, recovered=10_000)


def claim(number: int, *, is_recovered: bool = False) -> Claim:
    return Claim(
        turn_id=TurnId(number),
        session_id=SessionId(number),
        generation=Generation(1),
        epoch=Epoch(1),
        worker_id=WorkerId(1),
        is_recovered=is_recovered,
    )


@dataclass(slots=True)
class Crowd:
    """Turns in the queue, in slots, in line and only waiting; a seed says what they do."""

    slots: Slots
    dice: random.Random
    queue: list[Claim] = field(default_factory=list)
    open: list[Slot] = field(default_factory=list)
    """Claimed turns, with a slot or without."""
    made: int = 0

    def arrive(self) -> None:
        self.made += 1
        self.queue.append(claim(self.made, is_recovered=self.dice.random() < 0.4))
        self.dispatch()

    def dispatch(self) -> None:
        """As `Dispatch` does: again until nothing was claimed, and turns that were interrupted
        behind all others."""
        while self._claim():
            pass

    def _claim(self) -> int:
        aside = self.slots.set_aside(WIDE)
        living = [each for each in self.queue if not each.is_recovered][: aside.turns]
        most = min(aside.turns - len(living), aside.recovered)
        claims = living + [each for each in self.queue if each.is_recovered][:most]
        self.queue = [each for each in self.queue if each not in claims]
        self.open += self.slots.settle(aside, claims)
        return len(claims)

    def waits(self) -> None:
        """A turn that computes has only calls that wait."""
        if holding := [slot for slot in self.open if slot.is_held]:
            self.dice.choice(holding).give_back()

    async def comes_back(self) -> None:
        """The wait of a turn is over."""
        resting = [each for each in self.open if not each.is_held and each not in self.slots.line]
        if resting:
            slot = self.dice.choice(resting)
            slot.go_on = Event()
            self.slots.line_up(slot)

    def ends(self) -> None:
        """Answered, or cancelled: also one that waits in line."""
        if self.open:
            slot = self.dice.choice(self.open)
            self.open.remove(slot)
            slot.leave()

    def check(self) -> None:
        slots, holding = self.slots, [slot for slot in self.open if slot.is_held]
        recovered = sum(slot.is_recovered for slot in holding)
        share = slots.slots_max - slots_kept(slots.slots_max)
        assert slots.held == len(holding) + slots.promised <= slots.slots_max
        assert slots.recovered == recovered <= share
        is_full = slots.held == slots.slots_max
        for slot in slots.line:
            assert not slot.is_held
            assert is_full or (slot.is_recovered and recovered == share), "a slot lies idle"
        assert slots.promised <= 1
        living = [each for each in self.queue if not each.is_recovered]
        assert not living or is_full or slots.promised, "a message waits while a slot is free"


@pytest.mark.parametrize("seed", range(30))
async def test_a_slot_is_never_lost_idle_or_held_beyond_a_share(seed: int) -> None:
    """Issue 12, B10: for all acts of turns in any order, also when they end while they wait."""
    dice = random.Random(seed)
    crowd = Crowd(Slots(slots_max=dice.choice([1, 2, 3, 4, 16])), dice)
    for _ in range(400):
        match dice.choice(["arrive", "waits", "comes-back", "comes-back", "ends"]):
            case "arrive":
                crowd.arrive()
            case "waits":
                crowd.waits()
            case "comes-back":
                await crowd.comes_back()
            case _:
                crowd.ends()
        if crowd.slots.promised or dice.random() < 0.3:
            crowd.dispatch()
        crowd.check()
    for slot in crowd.open:
        slot.leave()
    crowd.open, crowd.queue = [], []
    crowd.dispatch()
    assert (crowd.slots.held, crowd.slots.recovered, crowd.slots.line) == (0, 0, [])


async def test_turns_take_their_slot_again_in_the_order_in_which_they_asked() -> None:
    """Issue 12, B10: oldest first."""
    slots = Slots(slots_max=1)
    first, *others = await _open(slots, [claim(number) for number in range(1, 5)])
    order: list[int] = []

    async def go_on(number: int, slot: Slot) -> None:
        await slot.take()
        order.append(number)
        await sleep(1)
        slot.leave()

    async with create_task_group() as tasks:
        for number, slot in enumerate(others):
            tasks.start_soon(go_on, number, slot)
        await until(lambda: len(slots.line) == len(others), "they are in line")
        first.leave()

    assert order == [0, 1, 2]


async def test_neither_the_line_nor_the_queue_starves() -> None:
    """Issue 12, B10: with one slot, turns that always come back and messages that always arrive
    get it by turns, and each turn in line gets it within one round."""
    slots = Slots(slots_max=1)
    served = dict.fromkeys(await _open(slots, [claim(number) for number in range(1, 6)]), 0)
    from_queue = 0
    for slot in served:
        slot.give_back()
        slot.go_on = Event()
        slots.line_up(slot)
    for _ in range(100):
        for slot in served:
            if slot.is_held:
                served[slot] += 1
                slot.give_back()
                slot.go_on = Event()
                slots.line_up(slot)
        aside = slots.set_aside(WIDE)
        claims = [claim(9)] if aside.turns else []
        from_queue += len(claims)
        for made in slots.settle(aside, claims):
            made.leave()

    assert from_queue >= 40
    assert max(served.values()) - min(served.values()) <= 1
    assert min(served.values()) >= 8


async def test_recovered_turns_that_come_back_leave_the_kept_slots_alone() -> None:
    """Issue 12, B10: twelve of sixteen are theirs, also when more of them come back at once; a
    message finds a slot at once."""
    slots = Slots(slots_max=16)
    recovered = await _open(slots, [claim(n, is_recovered=True) for n in range(1, 41)])
    for slot in recovered:
        slot.give_back()
    for slot in recovered:
        slot.go_on = Event()
        slots.line_up(slot)

    assert sum(slot.is_held for slot in recovered) == 12
    assert slots.set_aside(WIDE) == FreeSlots(turns=4, recovered=0)


async def test_a_gateway_that_leaves_lets_every_turn_go_on_without_a_slot() -> None:
    slots = Slots(slots_max=1)
    _, waiting = await _open(slots, [claim(1), claim(2)])
    async with create_task_group() as tasks:
        tasks.start_soon(waiting.take)
        await until(lambda: waiting in slots.line, "it is in line")
        slots.close()

    assert not waiting.is_held
    await waiting.take()


async def test_a_turn_keeps_its_slot_while_one_of_its_calls_computes() -> None:
    """Issue 12, B10: it is given back when all that is left only waits."""
    slot = lone_slot()
    held: list[bool] = []
    await slot.begin_calls([Load.WORK, Load.COMMAND, Load.WAIT])
    held.append(slot.is_held)
    for ended, begun in (
        (Load.WORK, None),
        (Load.COMMAND, Load.WORK),
        (Load.WORK, None),
        (Load.WAIT, None),
    ):
        await slot.go_on_with(ended=ended, begun=begun)
        held.append(slot.is_held)
    await slot.take()

    assert held == [True, False, True, False, False]
    assert slot.slots.held == 1


async def test_a_call_that_computes_keeps_the_slot_for_the_request_behind_it() -> None:
    slot = lone_slot()
    await slot.begin_calls([Load.WORK])
    await slot.go_on_with(ended=Load.WORK, begun=None)
    assert slot.is_held


async def _open(slots: Slots, claims: Sequence[Claim]) -> list[Slot]:
    """Claimed turns that have given their slots back, but for as many as there are."""
    made: list[Slot] = []
    for each in claims:
        aside = slots.set_aside(WIDE)
        if not aside.turns or (each.is_recovered and not aside.recovered):
            slots.settle(aside, ())
            holding = next(slot for slot in made if slot.is_held)
            holding.give_back()
            aside = slots.set_aside(WIDE)
        made += slots.settle(aside, [each])
    for slot in made[1:]:
        slot.give_back()
    if not made[0].is_held:
        await made[0].take()
    return made
