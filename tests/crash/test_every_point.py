"""One test for each crash point of the path of a message: the real gateway dies there by SIGKILL
while people talk to it, is started again, and everything that must be true is true.

The invariants are in tests/harness/invariants.py, the people in stories.py.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.crash.points import (
    EXEMPT,
    MOMENTS,
    POINTS,
    Point,
    chosen,
    kills_in,
    points_beside_the_writer,
    verbs_of_the_store,
)
from tests.crash.stories import CHAT, STORIES
from tests.crash.telling import counted, tell, told_undisturbed, verbs_of
from tests.harness.invariants import transcript
from tests.harness.tally import WANTS_ALL, found_by
from tests.harness.watched import PLANTED, ROOT
from tests.sim.run import leaves_of


async def _killed_there(story: str, ends: Sequence[str], home: Path, undisturbed: Path) -> None:
    """Tell it, and compare with what it comes to when no one dies."""
    with counted(story, ends):
        rows = await tell(home, story, ends)
        if STORIES[story].is_repeatable:
            assert transcript(rows, CHAT) == await told_undisturbed(undisturbed, story)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("point", chosen(), ids=str)
async def test_killed_there_everything_goes_on_and_nothing_happens_twice(
    point: Point, moment: str, home: Path, tmp_path: Path
) -> None:
    """S158, S159, S162, S145, S149: after the kill the transcript is a prefix of what it would
    have been, in the end it is the same; every acknowledged message is answered or was dropped
    with a reason; every word reaches the person once."""
    await _killed_there(point.story, point.ends(moment), home, tmp_path / "undisturbed" / "home")


@pytest.mark.skipif(not WANTS_ALL, reason="`make torture` does it: hundreds of kills")
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("story", sorted(STORIES))
async def test_every_verb_that_a_story_comes_by_may_be_the_last_of_a_life(
    story: str, tmp_path: Path
) -> None:
    """The same at every crash point of every story, whatever verbs it comes by."""
    undisturbed = tmp_path / "undisturbed" / "home"
    await told_undisturbed(undisturbed, story)
    failed = []
    kills = kills_in(story, verbs_of(story))
    for number, ends in enumerate(kills):
        try:
            await _killed_there(story, ends, tmp_path / f"{number}" / "home", undisturbed)
        except (AssertionError, ExceptionGroup) as error:
            failed.append(f"{ends}: {error!r}")

    assert kills
    assert not failed, "\n".join(failed)


async def test_a_gateway_that_stores_too_late_is_found_out(home: Path) -> None:
    """The same look at a doctored one, which stores that a command has begun when it has ended."""
    bug = {PLANTED: "started_after_the_effect"}

    with pytest.raises((AssertionError, ExceptionGroup)) as found:
        await tell(home, "command", ["turns.start_call:before"], bug)

    said = " ".join(str(error) for error in leaves_of(found.value))
    assert re.search("ran (2 times|twice)", said), said
    found_by("commit after the effect", "crash points", "turns.start_call:before", said)


def test_every_verb_of_the_store_is_killed_at() -> None:
    """A new verb fails here until it has a story, or a reason why it needs none."""
    verbs = verbs_of_the_store()

    assert {point.verb for point in POINTS} | set(EXEMPT) == verbs
    assert not {point.verb for point in POINTS} & set(EXEMPT)


@pytest.mark.parametrize("verb", sorted(EXEMPT))
def test_a_verb_that_is_killed_elsewhere_is_named_there(verb: str) -> None:
    for name in re.findall(r"tests/\S+\.py", EXEMPT[verb]):
        text = (ROOT / name).read_text()
        group, _, rest = verb.partition(".")
        is_named = verb in text or (f"{group}.{{verb}}" in text and f'"{rest}"' in text)
        assert is_named, f"{name} does not speak of {verb}"


@pytest.mark.parametrize("point", sorted(points_beside_the_writer()))
def test_a_point_beside_the_writer_is_killed_at_elsewhere(point: str) -> None:
    """Issue 12, C18: `witness.hold` and the points of backups are reached without the writer."""
    group, _, rest = point.partition(".")
    texts = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    named = [
        text
        for text in texts
        if re.search(rf'"{re.escape(point)}(:(before|after))?"', text)
        or (f'f"{group}.{{' in text and f'"{rest}"' in text)
    ]

    assert named, f"no test kills a gateway at {point}"
