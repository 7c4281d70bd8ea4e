"""Gateways on PostgreSQL are killed at random instants while people write: one alone, whose next
life goes on; or one of several, whose work goes on elsewhere or waits for it."""

import random
from pathlib import Path

import pytest

from tests.fleet.faults import in_trouble
from tests.harness.fleet import LEASE_S
from tests.harness.postgres import Cluster
from tests.harness.tally import WANTS_ALL, add_to_tally

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1_200)]

KILLS = 25 if WANTS_ALL else 3
RUNS = range(12) if WANTS_ALL else range(1, 2)
"""Three hundred kills; two gateways in the portion that is always tried."""


@pytest.mark.parametrize("number", RUNS)
async def test_kills_at_random_instants_lose_and_double_nothing(
    cluster: Cluster, tmp_path: Path, number: int
) -> None:
    seed = random.randrange(1 << 20) if WANTS_ALL else 3
    nodes = number % 3 + 1
    print(f"seed {seed}, {nodes} nodes, {KILLS} kills")
    async with in_trouble(cluster, tmp_path, seed, nodes, LEASE_S, KILLS + 1) as trouble:
        for _ in range(KILLS):
            trouble.write()
            await trouble.kill_in_a_moment()
        trouble.write()
        await trouble.come_to_rest()
        found = trouble.violations()
        case = {"cases": KILLS, "not_reached": 0, "violations": len(found)}
        campaign = f"several gateways: {nodes} on PostgreSQL, killed at random instants"
        add_to_tally("faults", {"campaign": campaign, **case})
        assert found == [], f"seed {seed}: {found}\n{trouble.fleet.log}"
