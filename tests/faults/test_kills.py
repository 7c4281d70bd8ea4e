"""Killed at every call that changes the home: see kills.py for what is tried.

`make test` tries every sixtieth case, `make torture` (KOBOSHI_TESTS=all) all of them.
"""

import pytest

from tests.faults.campaign import campaign, nothing_is_wrong
from tests.harness.tally import WANTS_ALL

PARTS = 6 if WANTS_ALL else 1
EVERY = PARTS if WANTS_ALL else 60


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_is_its_last_change_everything_told_is_there(part: int) -> None:
    """S10, S158, S162: the word of the store is true at each call at which it can die; the file
    is whole; the next life brings every message to its one answer."""
    arguments = ("kills", f"--every={EVERY}", f"--first={part * EVERY // PARTS}")

    tally = campaign(*arguments, f"--name=killed at every change, part {part + 1} of {PARTS}")

    nothing_is_wrong(tally, *arguments, at_least=200 if WANTS_ALL else 20)
    assert {kind.split()[0] for kind in tally.kinds} == {"before", "after", "torn"}


def test_a_store_that_acknowledges_first_is_found_out() -> None:
    """The same look at a doctored run finds what it says too early."""
    tally = campaign(
        *("kills", "--every=61", "--tells-first", "--name=control: told before the commit")
    )

    assert any("accepted" in words and "is not there" in words for words in tally.violations)


@pytest.mark.timeout(1_800)
def test_a_write_that_takes_only_a_part_is_gone_on_with() -> None:
    """S10: the kernel may take less than it was given; that is no error, and nothing is torn."""
    arguments = ("shorts", f"--every={1 if WANTS_ALL else 60}")

    tally = campaign(*arguments, "--name=short writes")

    nothing_is_wrong(tally, *arguments, at_least=200 if WANTS_ALL else 8)


def test_a_part_of_a_write_that_is_called_whole_is_found_out() -> None:
    """The same look finds what is missing when the rest was never written."""
    tally = campaign("shorts", "--every=20", "--lies", "--name=control: parts told to be whole")

    assert tally.violations
