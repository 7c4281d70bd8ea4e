"""Many people at once, and a gateway that is killed among them, then again while it recovers."""

import random
from pathlib import Path

import pytest
from anyio import create_task_group

from tests.crash.stories import STORIES
from tests.crash.telling import checked, told_undisturbed
from tests.harness.invariants import transcript
from tests.harness.lives import Lives, lives
from tests.harness.tally import WANTS_ALL

CROWD = ("echo", "two-tools", "question", "follow-ups", "long-answer", "stop", "empty-once")

IN_THE_MIDDLE = {
    "inbox.accept": 8,
    "turns.claim": 6,
    "turns.append": 3,
    "turns.start_call": 3,
    "turns.finish_call": 3,
    "turns.answer": 5,
    "outbox.claim": 6,
    "outbox.settle": 6,
}
"""Verbs that the crowd needs at least so often."""

AT_BOOT = (
    "workers.beat:before",
    "turns.claim:before",
    "workers.start:before",
    "workers.start:after",
)
"""Before any turn is taken up again: a second death in a row would be followed by a long pause."""


@pytest.mark.parametrize("seed", range(8 if WANTS_ALL else 3))
async def test_a_crowd_survives_a_kill_and_two_more_during_the_recovery(
    seed: int, home: Path, tmp_path: Path
) -> None:
    """S3, S86, S97, S158, S163: exactly the turns that were not over go on, each in its own chat,
    whatever the others were doing; killing the recovery changes nothing."""
    dice = random.Random(seed)
    verb = dice.choice(sorted(IN_THE_MIDDLE))
    ends = [f"{verb}:{dice.choice(('before', 'after'))}:{dice.randint(1, IN_THE_MIDDLE[verb])}"]
    ends += dice.choices(AT_BOOT, k=2)
    print(f"seed {seed}: {ends}")

    async with lives(home, ends) as life:
        await _tell_all(life)
        rows = await checked(life)

    for name in CROWD:
        if STORIES[name].is_repeatable:
            undisturbed = await told_undisturbed(tmp_path / name / "home", name)
            assert transcript(rows, name) == undisturbed


async def _tell_all(life: Lives) -> None:
    async with create_task_group() as people:
        for name in CROWD:
            people.start_soon(STORIES[name].tell, life, name)
