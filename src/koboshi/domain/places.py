"""Places: how many turns may run at once, and how many of them may be recovered ones."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How many turns may be claimed now."""

    turns: int
    recovered: int
    """How many of these may be recovered ones."""


NO_ROOM = Room(turns=0, recovered=0)


def places_kept(turns_max: int) -> int:
    """How many places no recovered turn may hold: a quarter, and at least one where there are
    two."""
    return 0 if turns_max == 1 else max(1, turns_max // 4)


def room_for(turns_max: int, *, running: int, recovered: int) -> Room:
    """What may be claimed while `running` turns run, `recovered` of them recovered ones."""
    free = max(0, turns_max - running)
    share = turns_max - places_kept(turns_max)
    return Room(turns=free, recovered=max(0, min(free, share - recovered)))
