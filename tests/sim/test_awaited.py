"""Promises of issue 12 that the gateway does not keep yet: the simulation sees each of them broken.

When one is kept, its test here passes and so fails: then its number goes from AWAITED, and from
then on whatever breaks it again fails a run.
"""

import pytest

from tests.sim.plots import Plot, seeds_about
from tests.sim.run import run_seed
from tests.sim.violations import AWAITED

SEEDS_MAX = 60
WHERE = {
    "A1": Plot.ROUGH,
    "A2": Plot.OUTAGE,
    "A3": Plot.PEOPLE,
    "A4": Plot.STARVED,
    "A5": Plot.CLOCK,
    "B9": Plot.SIDE,
}


@pytest.mark.simulation
@pytest.mark.timeout(900)
@pytest.mark.xfail(strict=True, reason="issue 12: the mend is not here yet")
@pytest.mark.parametrize("number", sorted(AWAITED))
def test_a_promise_is_kept_that_was_not(number: str) -> None:
    for seed in seeds_about(WHERE[number], SEEDS_MAX):
        found = run_seed(seed).awaited
        assert number not in found, f"seed {seed}: {found[number]}"


def test_each_awaited_promise_is_looked_for_somewhere() -> None:
    assert set(WHERE) >= AWAITED
