"""Foreign agents belong to the node that started them: no other node feeds or reads them."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from anyio import create_task_group

from koboshi.domain.burial import WAIT_PARTS
from koboshi.domain.ids import ProcessId
from koboshi.processes.runners import LocalRunners
from tests.fakes.acp import agent as fake
from tests.harness.client import Client
from tests.harness.fleet import AnyNode, Fleet, a_fleet
from tests.harness.polling import until
from tests.harness.postgres_backend import Database

pytestmark = pytest.mark.crash

LEASE_S = 2
ENV = {"KOBOSHI__TOOLS__SANDBOX": "host", "KOBOSHI__TOOLS__TERMINAL__APPROVAL": "never"}


@pytest.fixture
async def fleet(tmp_path: Path, database: Database) -> AsyncIterator[Fleet]:
    """Two nodes with work folders of their own, and with the fake agent."""
    command = json.dumps([sys.executable, str(Path(fake.__file__))])
    text = f'[gateway]\nagent = "fake"\n[agents.fake]\ncommand = {command}\n'
    with a_fleet(tmp_path, database, "a", "b", env=ENV, lease_s=LEASE_S) as both:
        for node in both.nodes.values():
            (node.gateway.home / "koboshi.toml").write_text(text)
            node.gateway.workdir.mkdir()
        yield both
    for node in both.nodes.values():
        folder = node.gateway.home / "processes"
        runners = LocalRunners(folder)
        for place in sorted(folder.glob("[0-9]*")):
            await runners.end(ProcessId(int(place.name)), grace_s=0)


def did(fleet: Fleet, node: str) -> list[str]:
    """What the agents of a node did."""
    log = fleet[node].gateway.workdir / "acp.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.partition(" ")[2] for line in lines]


async def begun_at_a(fleet: Fleet, script: str, until_done: str) -> Client:
    fleet["a"].start()
    await Client(AnyNode([fleet["a"]]), "ann").say(script, "one")
    await until(lambda: until_done in did(fleet, "a"), until_done, otherwise=lambda: fleet.log)
    # What only the spool of A holds is unknown to every other node.
    begun = "SELECT count(*) FROM calls WHERE started_ms IS NOT NULL"
    await until(lambda: fleet.number(begun), "A has stored the call", otherwise=lambda: fleet.log)
    fleet["b"].start()
    await fleet.ready("b")
    return Client(AnyNode([fleet["b"]]), "ann")


async def test_a_busy_agent_of_a_lost_node_is_never_prompted_again_and_ended_at_its_return(
    fleet: Fleet,
) -> None:
    """The node may come back for a while; then another agent goes on, and knows what happened."""
    script = "> call c1 work\n> run echo ran >> ran\n> wait go\n> end c1 done\n> say fin"
    there = await begun_at_a(fleet, script, "wait go")
    async with create_task_group() as tasks:
        tasks.start_soon(there.keep_following)
        fleet["a"].gateway.kill()
        await until(
            lambda: "prompt 1 again" in did(fleet, "b"), "B goes on", otherwise=lambda: fleet.log
        )
        (fleet["b"].gateway.workdir / "go").touch()
        await there.sees(lambda event: event.kind == "answer", "an answer")
        # The agent at A answers, too, when its node comes back: that is of an old time.
        (fleet["a"].gateway.workdir / "go").touch()
        await until(lambda: "stop 1 end_turn" in did(fleet, "a"), "the agent at A ends its work")
        fleet["a"].start()
        ended = "SELECT count(*) FROM processes WHERE process_id = 1 AND ended_ms IS NOT NULL"
        await until(lambda: fleet.number(ended), "A has ended it", otherwise=lambda: fleet.log)
        await fleet.comes_to_rest()
        tasks.cancel_scope.cancel()

    assert fleet.taken_over_after_s() >= LEASE_S * WAIT_PARTS, "its node could have come back"
    assert fleet.rows("SELECT rule FROM agent_messages WHERE kind = 'prompt' ORDER BY made_ms") == [
        (None,),
        ("agent-away",),
    ]
    assert len(there.answered()) == 1
    assert [each for each in there.heard() if "its own memory of this conversation is gone" in each]
    assert [line for line in did(fleet, "a") if line.startswith("prompt")] == ["prompt 1 first"]
    assert [line for line in did(fleet, "b") if line.startswith("prompt")] == ["prompt 1 again"]
    assert fleet.rows("SELECT outcome FROM calls ORDER BY place") == [("unknown",), ("ok",)]
