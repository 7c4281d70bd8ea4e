"""Several gateways against a platform while nodes die, stand still and lose their server: each
message is answered once, in order, and no command runs twice."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fleet.faults import in_trouble
from tests.harness.fleet import LEASE_S
from tests.harness.postgres import Cluster
from tests.harness.tally import WANTS_ALL, add_to_tally

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1_200)]

FAULTS_IN_RUN = 6 if WANTS_ALL else 2
RUNS = 80 if WANTS_ALL else 1
"""Of six faults each, with the twelve at the usual lease: five hundred in all."""
LONG_LEASE_S = 15.0


async def run(
    cluster: Cluster,
    folder: Path,
    seed: int,
    nodes: int,
    faults: int,
    lease: float,
    kinds: Sequence[str] = (),
) -> None:
    print(f"seed {seed}, {nodes} nodes, {faults} faults, a lease of {lease:g} s")
    async with in_trouble(cluster, folder, seed, nodes, lease) as trouble:
        for number in range(faults):
            trouble.write()
            await trouble.fail(*kinds[number : number + 1])
        trouble.write()
        await trouble.come_to_rest()
        found = trouble.violations()
        for kind, count in trouble.counts.items():
            case = {"cases": count, "not_reached": 0, "violations": len(found)}
            add_to_tally("faults", {"campaign": f"several gateways: {kind}", **case})
        assert found == [], f"seed {seed}: {found}\n{trouble.fleet.log}"


@pytest.mark.parametrize("number", range(RUNS))
async def test_whatever_fails_each_message_is_answered_once_and_in_order(
    cluster: Cluster, tmp_path: Path, number: int
) -> None:
    seed = random.randrange(1 << 20) if WANTS_ALL else 7
    nodes = number % 3 + 1 if WANTS_ALL else 2
    await run(cluster, tmp_path, seed, nodes, FAULTS_IN_RUN, LEASE_S)


async def test_moved_clocks_change_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """Those of the nodes decide nothing, and that of the server is made good."""
    kinds = ("the clock of a gateway jumps", "the clock of the server jumps")
    await run(cluster, tmp_path, 11, 2, len(kinds), LEASE_S, kinds)


@pytest.mark.skipif(not WANTS_ALL, reason="in the campaign: at the usual lease it takes minutes")
@pytest.mark.parametrize("number", range(2))
async def test_the_same_at_the_usual_lease(cluster: Cluster, tmp_path: Path, number: int) -> None:
    await run(cluster, tmp_path, random.randrange(1 << 20), 2 + number, 10, LONG_LEASE_S)
