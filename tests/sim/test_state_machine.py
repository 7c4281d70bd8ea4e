"""Everything that can happen to the store, in every order that Hypothesis thinks of, against a
reference of a few lines."""

import pytest

from tests.harness.tally import add_to_tally
from tests.sim.store_machine import EXAMPLES, GROUPS, ONE_SEED, run_machine


@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", [int(ONE_SEED)] if ONE_SEED else range(GROUPS))
def test_the_store_does_what_the_reference_says_whatever_happens(group: int) -> None:
    """S3, S97, S158, S161. Shown again by KOBOSHI_SEED=<group>."""
    tallied = run_machine(group, EXAMPLES // GROUPS)

    assert tallied["examples"] >= EXAMPLES // GROUPS
    add_to_tally("state machine", {**tallied, "violations": 0})
