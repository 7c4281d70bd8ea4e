"""A campaign that can not fail proves nothing: bugs that gateways have had are planted, one at a
time, and each must be found."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
from hypothesis import Phase

from tests.harness.tally import found_by
from tests.sim import planted
from tests.sim.run import leaves_of, run_seed
from tests.sim.store import Promises
from tests.sim.test_state_machine import run_machine

SEEDS_MAX = 100
EXAMPLES = 25
Bug = Callable[[], AbstractContextManager[None]]


def _acknowledges_early() -> Promises:
    return Promises(answers_early={"inbox.accept"})


def _first_violation(bug: Bug, promises: Callable[[], Promises]) -> tuple[int, str]:
    """The first seed that notices the bug, and what it says."""
    with bug():
        for seed in range(SEEDS_MAX):
            run = run_seed(seed, promises=promises)
            if run.violation:
                return seed, run.violation
    raise AssertionError(f"nobody noticed in {SEEDS_MAX} seeds")


@pytest.mark.simulation
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name, bug, promises, said",
    [
        ("ack before commit", nullcontext, _acknowledges_early, "is stored 0 times"),
        (
            "answer and outbox in two transactions",
            planted.answer_and_outbox_apart,
            Promises,
            "'state': 'answered'",
        ),
        ("commit after the effect", planted.started_after_the_effect, Promises, " times"),
        (
            "disarm outside the transaction",
            planted.disarmed_apart,
            Promises,
            "was announced after it was read",
        ),
        ("counter after dispatch", planted.tries_counted_afterwards, Promises, "are counted"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_simulation_notices(
    name: str, bug: Bug, promises: Callable[[], Promises], said: str
) -> None:
    seed, violation = _first_violation(bug, promises)

    assert said in violation
    assert not run_seed(seed).violation, "without the bug, the same seed ends well"
    found_by(name, "simulation", f"seed {seed}", violation)


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
