"""The power is cut: see cuts.py for what is tried, and tests/harness/powercut.py for the disk.

`make test` looks at some fifty images, `make torture` (KOBOSHI_TESTS=all) at all moments.
"""

import pytest

from tests.faults.campaign import campaign, nothing_is_wrong
from tests.harness.tally import ROUND, WANTS_ALL

PARTS = 4 if WANTS_ALL else 1
EVERY = PARTS if WANTS_ALL else 64
IMAGES = 12 if WANTS_ALL else 4
SEED = 20_240 + ROUND * PARTS


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("checkpoints", [0, 30], ids=["as-it-is", "many-checkpoints"])
@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_that_was_told_is_lost_by_a_power_cut(part: int, checkpoints: int) -> None:
    """S10, S158: what was not flushed is dropped, reordered or torn; the file is whole and holds
    every acknowledged message, also while the log is moved into the file all the time."""
    arguments = (
        *("cuts", f"--every={EVERY}", f"--first={part}", f"--images={IMAGES}"),
        *(f"--seed={SEED + part}", f"--checkpoints={checkpoints}"),
    )
    name = f"power cuts{', many checkpoints' if checkpoints else ''}, part {part + 1} of {PARTS}"

    tally = campaign(*arguments, f"--name={name}")

    nothing_is_wrong(tally, *arguments, at_least=500 if WANTS_ALL else 15)


@pytest.mark.parametrize("level", ["NORMAL", "OFF"] if WANTS_ALL else ["NORMAL"])
def test_a_store_that_flushes_less_is_seen_to_lose(level: str) -> None:
    """The same look finds the acknowledged messages that `synchronous=NORMAL` loses, and the
    files that `OFF` breaks."""
    tally = campaign(
        *("cuts", "--every=40", "--images=4", f"--seed={SEED}", f"--synchronous={level}"),
        f"--name=control: power cuts with synchronous={level}",
    )

    assert any("accepted" in words and "is not there" in words for words in tally.violations)
    if level == "OFF":
        assert any("broken" in words or "damage" in words for words in tally.violations)


def test_a_token_that_a_person_may_have_read_is_not_lost_by_a_power_cut() -> None:
    """The name of a new file is sure only when its folder was flushed, too."""
    tally = campaign("token", "--name=power cut after the first token")

    nothing_is_wrong(tally, "token", at_least=1)


def test_a_token_that_was_not_flushed_is_seen_to_be_lost() -> None:
    tally = campaign("token", "--forgets", "--name=control: a token that is not flushed")

    assert any("the token is gone" in words for words in tally.violations)
