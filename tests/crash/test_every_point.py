"""One test for each crash point of the path of a message: the real gateway dies there by SIGKILL
while people talk to it, is started again, and everything that must be true is true.

The invariants are in tests/harness/invariants.py, the people in stories.py.
"""

from pathlib import Path

import pytest

from tests.crash.points import (
    EXEMPT,
    MOMENTS,
    NOT_CALLED,
    POINTS,
    Point,
    callers_of,
    chosen,
    verbs_of_the_store,
)
from tests.crash.stories import CHAT, STORIES
from tests.crash.telling import tell, told_undisturbed
from tests.harness.invariants import transcript

_undisturbed: dict[str, object] = {}
"""What each story comes to when nobody dies; told once."""


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("point", chosen(), ids=str)
async def test_killed_there_everything_goes_on_and_nothing_happens_twice(
    point: Point, moment: str, home: Path, tmp_path: Path
) -> None:
    """S158, S159, S162, S145, S149: after the kill the transcript is a prefix of what it would
    have been, in the end it is the same; every acknowledged message is answered or was dropped
    with a reason; every word reaches the person once."""
    rows = await tell(home, point.story, point.ends(moment))

    if STORIES[point.story].is_repeatable:
        if point.story not in _undisturbed:
            place = tmp_path / "undisturbed" / "home"
            _undisturbed[point.story] = await told_undisturbed(place, point.story)
        assert transcript(rows, CHAT) == _undisturbed[point.story]


def test_every_verb_of_the_store_is_killed_at() -> None:
    """A new verb fails here until it has a story, or a reason why it needs none."""
    verbs = verbs_of_the_store()

    assert {point.verb for point in POINTS} | set(EXEMPT) == verbs
    assert not {point.verb for point in POINTS} & set(EXEMPT)


@pytest.mark.parametrize("verb", NOT_CALLED)
def test_a_verb_that_is_exempt_because_nobody_calls_it_has_no_caller(verb: str) -> None:
    """When it gets one, it needs a story."""
    assert callers_of(verb) == []
