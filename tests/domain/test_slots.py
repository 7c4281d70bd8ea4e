"""Slots: people come before what is taken up again, and always have one."""

import pytest

from koboshi.domain.slots import (
    FreeSlots,
    Grant,
    ToQueue,
    ToTurn,
    next_grant,
    room_for,
    slots_kept,
    within,
)


@pytest.mark.parametrize(
    "slots_max, kept", [(1, 0), (2, 1), (3, 1), (4, 1), (7, 1), (8, 2), (16, 4), (1_000, 250)]
)
def test_a_quarter_of_the_slots_is_kept_and_never_the_only_one(slots_max: int, kept: int) -> None:
    """S164: with one slot there is nothing to keep, or nothing would ever be taken up again."""
    assert slots_kept(slots_max) == kept


@pytest.mark.parametrize(
    "running, recovered, room",
    [
        (0, 0, FreeSlots(turns=8, recovered=6)),
        (6, 6, FreeSlots(turns=2, recovered=0)),
        (5, 5, FreeSlots(turns=3, recovered=1)),
        (7, 0, FreeSlots(turns=1, recovered=1)),
        (8, 6, FreeSlots(turns=0, recovered=0)),
        (9, 9, FreeSlots(turns=0, recovered=0)),
    ],
)
def test_what_may_be_claimed_follows_from_what_runs(
    running: int, recovered: int, room: FreeSlots
) -> None:
    assert room_for(8, held=running, recovered=recovered) == room


def test_recovered_turns_never_hold_the_slots_that_are_kept() -> None:
    """S52, S164: for every number of slots and of running turns, claiming as much as there is room
    for leaves the kept slots to others, and no more run than may."""
    for slots_max in range(1, 33):
        for running in range(slots_max + 1):
            for recovered in range(min(running, slots_max - slots_kept(slots_max)) + 1):
                room = room_for(slots_max, held=running, recovered=recovered)
                assert 0 <= room.recovered <= room.turns == slots_max - running
                assert recovered + room.recovered <= slots_max - slots_kept(slots_max)


# ── who gets the next free slot ─────────────────────────────────────────────────────────────────

LIVING, RECOVERED = False, True


@pytest.mark.parametrize(
    "line, room, queue_waits, queue_was_last, grant",
    [
        ([LIVING], FreeSlots(turns=0, recovered=0), True, False, None),
        ([], FreeSlots(turns=2, recovered=1), False, False, None),
        ([], FreeSlots(turns=2, recovered=1), True, True, ToQueue()),
        ([LIVING, LIVING], FreeSlots(turns=1, recovered=1), False, False, ToTurn(place=0)),
        ([RECOVERED, LIVING], FreeSlots(turns=1, recovered=1), False, False, ToTurn(place=0)),
        ([RECOVERED, LIVING], FreeSlots(turns=1, recovered=0), False, False, ToTurn(place=1)),
        ([RECOVERED], FreeSlots(turns=1, recovered=0), False, False, None),
        ([RECOVERED], FreeSlots(turns=1, recovered=0), True, True, ToQueue()),
        ([LIVING], FreeSlots(turns=1, recovered=1), True, False, ToQueue()),
        ([LIVING], FreeSlots(turns=1, recovered=1), True, True, ToTurn(place=0)),
    ],
)
def test_who_gets_a_free_slot(
    line: list[bool], room: FreeSlots, queue_waits: bool, queue_was_last: bool, grant: Grant
) -> None:
    """Issue 12, B10: the longest waiting first, by turns with the queue, and no recovered turn
    beyond its share."""
    found = next_grant(line, room, queue_waits=queue_waits, queue_was_last=queue_was_last)
    assert found == grant


def test_two_bounds_leave_the_smaller_room() -> None:
    wide, narrow = FreeSlots(turns=9, recovered=2), FreeSlots(turns=3, recovered=3)
    assert within(wide, narrow) == within(narrow, wide) == FreeSlots(turns=3, recovered=2)
