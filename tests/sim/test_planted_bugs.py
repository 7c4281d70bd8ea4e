"""A campaign that can not fail proves nothing: bugs that gateways have had are planted, one at a
time, and each must be found."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import pytest
from hypothesis import Phase

from tests.harness.tally import found_by
from tests.sim import planted
from tests.sim.plots import Plot, seeds_about
from tests.sim.run import leaves_of, run_seed
from tests.sim.store import Promises
from tests.sim.test_state_machine import run_machine

SEEDS_MAX = 40
EXAMPLES = 25
Bug = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Case:
    """A bug, what a run must be about to come by it, and what is said of it."""

    name: str
    bug: Bug
    plot: Plot
    said: str
    promises: Callable[[], Promises] = Promises


def _acknowledges_early() -> Promises:
    return Promises(answers_early={"inbox.accept"})


CASES = (
    Case("ack before commit", nullcontext, Plot.STEPS, "is stored 0 times", _acknowledges_early),
    Case(
        "answer and outbox in two transactions",
        planted.answer_and_outbox_apart,
        Plot.STEPS,
        "answered",
    ),
    Case("commit after the effect", planted.started_after_the_effect, Plot.STEPS, " times"),
    Case(
        "disarm outside the transaction",
        planted.disarmed_apart,
        Plot.STEPS,
        "was announced after it was read",
    ),
    Case("counter after dispatch", planted.tries_counted_afterwards, Plot.ROUGH, "are counted"),
    Case(
        "abandon at the first Unsure",
        planted.abandoned_at_the_first_unsure,
        Plot.ROUGH,
        "never arrived: its outcome is unknown after 1 tries",
    ),
    Case("deaths are not counted", planted.deaths_not_counted, Plot.DEADLY, "killed the gateway"),
    Case("nothing is ever stale", planted.nothing_is_stale, Plot.AWAY, "and nobody was asked"),
    Case(
        "old generations are heard",
        planted.old_generations_are_heard,
        Plot.CUTS,
        "which is of before a cut",
    ),
    Case(
        "nobody is checked for being allowed",
        planted.everybody_is_allowed,
        Plot.PEOPLE,
        "who is not allowed",
    ),
)


def _first_violation(case: Case) -> tuple[int, str]:
    """The first seed that notices the bug, and what it says."""
    with case.bug():
        for seed in seeds_about(case.plot, SEEDS_MAX):
            run = run_seed(seed, promises=case.promises)
            if case.said in run.violation:
                return seed, run.violation
    raise AssertionError(f"nobody noticed in {SEEDS_MAX} seeds")


@pytest.mark.simulation
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_simulation_notices(case: Case) -> None:
    """Issue 12, C17: what a person was owed, what the model was shown, what ran in the world."""
    seed, violation = _first_violation(case)

    without = run_seed(seed)
    assert case.said not in without.violation, "without the bug, the same seed ends well"
    assert not without.violation, without.told()
    found_by(case.name, "simulation", f"seed {seed}", violation)


@pytest.mark.timeout(900)
def test_the_state_machine_notices_a_write_without_its_epoch() -> None:
    """On one machine only a claim of a dead worker can be late, and the simulation has none that
    writes: so here somebody writes on purpose."""
    with (
        planted.no_epoch_in_claimed_writes(),
        pytest.raises((AssertionError, ExceptionGroup)) as found,
    ):
        run_machine(1, EXAMPLES, phases=(Phase.generate,))

    said = [str(error) for error in leaves_of(found.value)]
    assert any("a write of an old claim was taken" in words for words in said), said
    found_by("missing epoch condition", "state machine", "group 1", said[0])


def test_the_state_machine_ends_well_without_it() -> None:
    run_machine(1, EXAMPLES, phases=(Phase.generate,))
