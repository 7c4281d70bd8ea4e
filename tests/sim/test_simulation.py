"""The whole gateway on virtual time, in an order that a seed decides, killed at random moments.

After each run: nothing is lost, nothing is said twice without a label, nothing strict is done
twice, every person is answered or told, everything in order. A seed that fails is printed with all
that happened, and with the command that shows it again.
"""

import json
import os
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.harness.tally import ROUND, WANTS_ALL, add_to_tally, sums_in
from tests.sim.run import Totals, run_seed

SEEDS, GROUPS = (5_000, 100) if WANTS_ALL else (24, 4)
ONE_SEED = os.environ.get("KOBOSHI_SEED", "")
REGRESSIONS: tuple[int, ...] = (92, 799, 933, 941, 1639, 2634, 3067, 3582, 4045, 4243, 4542)
"""Seeds that once found something, and are not among the first of them."""
THESE = range(ROUND * SEEDS, (ROUND + 1) * SEEDS)
ALL_SEEDS = [*THESE, *(seed for seed in REGRESSIONS if seed not in THESE)]
GROUPED = [[int(ONE_SEED)]] if ONE_SEED else [ALL_SEEDS[first::GROUPS] for first in range(GROUPS)]


@pytest.mark.simulation
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", GROUPED, ids=lambda seeds: f"from-{seeds[0]}")
def test_whatever_the_seeds_do_every_person_is_answered_once(seeds: list[int]) -> None:
    """S3, S86, S97, S158, S161, S163."""
    totals, failed = Totals(), []
    for seed in seeds:
        run = run_seed(seed)
        totals.add(run)
        if run.violation:
            print(run.told())
            failed.append(f"seed {seed}: {run.violation}")
    add_to_tally("simulation", totals.counts)

    assert not failed, "\n".join(failed)
    assert totals.counts["messages"]
    assert ONE_SEED or totals.counts["crashes"]


@pytest.mark.parametrize("seed", [3, 11, 17])
def test_the_same_seed_gives_the_same_history(seed: int) -> None:
    """Or no one could ever find out why one failed."""
    first, second = run_seed(seed), run_seed(seed)

    assert first.history.lines == second.history.lines
    assert len(first.history.lines) > 50


def test_the_same_seed_gives_the_same_history_in_another_process() -> None:
    """Neither addresses nor the hashes of a process decide anything."""
    with get_context("spawn").Pool(1) as others:
        theirs = others.apply(_lines_of, (5,))

    assert theirs == run_seed(5).history.lines


def test_another_seed_gives_another_history() -> None:
    assert run_seed(3).history.lines != run_seed(4).history.lines


def test_a_run_tells_how_to_see_it_again() -> None:
    run = run_seed(7)
    run.violation = "something is wrong"

    assert "seed 7: something is wrong" in run.told()
    assert "KOBOSHI_SEED=7 pytest tests/sim/test_simulation.py" in run.told()
    assert "commit workers.start" in run.told()


def test_a_tally_adds_up_what_all_processes_counted(tmp_path: Path) -> None:
    place = tmp_path / "tally.json"
    add_to_tally("simulation", {"seeds": 2, "crashes": 3}, str(place))
    add_to_tally("simulation", {"seeds": 1}, str(place))
    add_to_tally("state machine", {"examples": 5}, str(place))

    assert sums_in(place) == {
        "simulation": {"results": 2, "seeds": 3, "crashes": 3},
        "state machine": {"results": 1, "examples": 5},
    }
    assert json.loads(place.read_text())


def _lines_of(seed: int) -> list[str]:
    return run_seed(seed).history.lines
