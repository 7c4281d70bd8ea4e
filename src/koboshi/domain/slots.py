"""Slots: how many turns may compute at once, and which turn gets the next free slot. Pure.

A turn holds a slot while it computes. While all of its running calls only wait (for a command, for
a time), it gives the slot back, and it lines up for one before it asks the model again. Three
bounds follow from that: turns that compute, turns that are open, and commands that run.

Turns that were interrupted and go on never hold the slots that are kept for the others. A
recovered turn that gives its slot back and takes one again is still a recovered turn, and so are
those that are open and only wait: the same share bounds both. So a message finds a slot, however
many turns a boot takes up again. What is not kept is given in the order in which turns lined up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLimits:
    turns_max: int = 16
    """Turns that compute at once."""
    open_turns_max: int = 256
    """Turns that are claimed at once: those that compute, and those that only wait."""
    commands_max: int = 64
    """Foreground commands that run at once."""
    agents_max: int = 8
    """Processes of foreign agents that live at once."""

    def has_room_for(self, commands_running: int) -> bool:
        """Whether another command may be started beside those that run."""
        return commands_running < self.commands_max


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeSlots:
    """How many turns may be claimed now."""

    turns: int
    recovered: int
    """How many of these may be recovered ones."""


NO_ROOM = FreeSlots(turns=0, recovered=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToTurn:
    """The free slot goes to a turn that waits in line, counted from the front."""

    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToQueue:
    """The free slot is left to a turn that is in the queue."""


Grant: TypeAlias = ToTurn | ToQueue | None
"""Who gets a free slot; None if it stays free, or there is none."""


def slots_kept(slots_max: int) -> int:
    """How many slots no recovered turn may hold: a quarter, and at least one where there are
    two."""
    return 0 if slots_max == 1 else max(1, slots_max // 4)


def room_for(slots_max: int, *, held: int, recovered: int) -> FreeSlots:
    """What is free while `held` slots are held, `recovered` of them by recovered turns."""
    free = max(0, slots_max - held)
    share = slots_max - slots_kept(slots_max)
    return FreeSlots(turns=free, recovered=max(0, min(free, share - recovered)))


def within(one: FreeSlots, other: FreeSlots) -> FreeSlots:
    """The room that both bounds leave."""
    turns = min(one.turns, other.turns)
    return FreeSlots(turns=turns, recovered=min(turns, one.recovered, other.recovered))


def next_grant(
    line: Sequence[bool], room: FreeSlots, *, queue_waits: bool, queue_was_last: bool
) -> Grant:
    """Who gets the next free slot.

    `line` says of each turn that waits for a slot whether it is a recovered one, the longest
    waiting first. A recovered turn is passed over while the recovered ones have their share. Where
    turns wait in line and in the queue, they get a slot by turns: neither can starve the other.
    """
    if not room.turns:
        return None
    fits = (place for place, is_recovered in enumerate(line) if not is_recovered or room.recovered)
    place = next(fits, None)
    if place is None:
        return ToQueue() if queue_waits else None
    if queue_waits and not queue_was_last:
        return ToQueue()
    return ToTurn(place=place)
