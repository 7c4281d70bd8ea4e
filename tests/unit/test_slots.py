"""Places: people come before what is taken up again, and always have one."""

import pytest

from koboshi.domain.places import Room, places_kept, room_for


@pytest.mark.parametrize(
    "turns_max, kept", [(1, 0), (2, 1), (3, 1), (4, 1), (7, 1), (8, 2), (16, 4), (1_000, 250)]
)
def test_a_quarter_of_the_places_is_kept_and_never_the_only_one(turns_max: int, kept: int) -> None:
    """S164: with one place there is nothing to keep, or nothing would ever be taken up again."""
    assert places_kept(turns_max) == kept


@pytest.mark.parametrize(
    "running, recovered, room",
    [
        (0, 0, Room(turns=8, recovered=6)),
        (6, 6, Room(turns=2, recovered=0)),
        (5, 5, Room(turns=3, recovered=1)),
        (7, 0, Room(turns=1, recovered=1)),
        (8, 6, Room(turns=0, recovered=0)),
        (9, 9, Room(turns=0, recovered=0)),
    ],
)
def test_what_may_be_claimed_follows_from_what_runs(
    running: int, recovered: int, room: Room
) -> None:
    assert room_for(8, running=running, recovered=recovered) == room


def test_recovered_turns_never_hold_the_places_that_are_kept() -> None:
    """S52, S164: for every number of places and whatever runs, claiming as much as there is room
    for leaves the kept places to others, and no more run than may."""
    for turns_max in range(1, 33):
        for running in range(turns_max + 1):
            for recovered in range(min(running, turns_max - places_kept(turns_max)) + 1):
                room = room_for(turns_max, running=running, recovered=recovered)
                assert 0 <= room.recovered <= room.turns == turns_max - running
                assert recovered + room.recovered <= turns_max - places_kept(turns_max)
