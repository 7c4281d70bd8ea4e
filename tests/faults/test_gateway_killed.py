"""A gateway is killed at the calls that change its home, while a person talks to it.

The store alone is killed at every call in test_kills.py, with fewer seconds for each; here it is
the whole program, from the making of its home to the delivery of an answer, with all invariants of
the crash tests. `make torture` (KOBOSHI_TESTS=all) takes every fourth call, each before, after or
torn in turn; `make test` a few.
"""

from pathlib import Path

import pytest

from tests.crash.telling import tell
from tests.faults.serving import write_down
from tests.harness.lives import AT_CHANGE
from tests.harness.tally import WANTS_ALL

CHANGES = 300
"""Of a first life, up to the answer and a few beats beyond; later ones come by themselves."""
WAYS = ("before", "after", "torn")

PLACES = [
    (WAYS[place % len(WAYS)], number)
    for place, number in enumerate(range(1, CHANGES, 4 if WANTS_ALL else CHANGES // 3))
]


@pytest.mark.parametrize("how, number", PLACES)
async def test_killed_at_a_change_of_its_home_it_goes_on(home: Path, how: str, number: int) -> None:
    """S10, S158, S162: whatever was being written, the story comes to the same end."""
    await tell(home, "two-tools", [f"{AT_CHANGE}{how}:{number}"])
    write_down(f"gateway killed {how} change {number}")
