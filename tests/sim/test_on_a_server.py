"""The same simulation with the rows on a PostgreSQL: the batches, the keys and the dialect of that
store, killed at the same moments."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import run

from tests.harness.homes import Home
from tests.harness.postgres_backend import DATABASES, Database, PostgresBackend
from tests.harness.tally import ROUND, WANTS_ALL, add_to_tally
from tests.sim.run import Totals, run_seed

SEEDS, GROUPS = (500, 20) if WANTS_ALL else (4, 2)
ONE_SEED = os.environ.get("KOBOSHI_SEED", "")
ALL_SEEDS = [int(ONE_SEED)] if ONE_SEED else list(range(ROUND * SEEDS, (ROUND + 1) * SEEDS))
GROUPED = [ALL_SEEDS[first::GROUPS] for first in range(min(GROUPS, len(ALL_SEEDS)))]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Database]:
    database = DATABASES.take()
    run(_make, database, tmp_path / "first")
    yield database
    DATABASES.give_back(database)


async def _make(database: Database, folder: Path) -> None:
    home = Home(backend=PostgresBackend(folder, database=database))
    await home.open()
    await home.store.close()


@pytest.mark.simulation
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seeds", GROUPED, ids=lambda seeds: f"from-{seeds[0]}")
def test_whatever_the_seeds_do_every_person_is_answered_once(
    seeds: list[int], server: Database
) -> None:
    """Issue 16, step 8."""
    totals, failed = Totals(), []
    for seed in seeds:
        server.opened()
        server.empty()
        found = run_seed(seed, server=server)
        totals.add(found)
        if found.violation:
            print(found.told())
            failed.append(f"seed {seed}: {found.violation}")
    add_to_tally("simulation on PostgreSQL", totals.counts)

    assert not failed, "\n".join(failed)
    assert totals.counts["messages"]
    assert ONE_SEED or totals.counts["crashes"]
