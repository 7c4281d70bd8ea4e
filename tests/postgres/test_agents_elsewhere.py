"""Foreign agents of another node: who may have their chats, and what is known of their work."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias, cast

import pytest

from koboshi.domain.agent import LoseAgent, MessageKind, Start, next_move
from koboshi.domain.agent_talk import Settled
from koboshi.domain.ids import ProcessId
from koboshi.domain.recovery import VerdictKind
from koboshi.domain.sandbox import Boundary
from koboshi.domain.turn import Claim
from tests.harness.fake_time import DAY_MS
from tests.harness.homes import Home
from tests.harness.postgres_backend import Database, PostgresBackend

Nodes: TypeAlias = tuple[Home, Home]
AGENT = "fake"


@pytest.fixture
async def nodes(database: Database, tmp_path: Path) -> AsyncIterator[Nodes]:
    made = tuple(
        Home(backend=PostgresBackend(tmp_path / name, database=database)) for name in ("a", "b")
    )
    for node in made:
        await node.boot()
    yield cast("Nodes", made)
    for node in made:
        await node.store.close()


async def prompted_at(node: Home) -> tuple[Claim, ProcessId]:
    """A turn that an agent of the node works on."""
    claim, agents = await node.work_on("do it"), node.store.agents
    process = await agents.begin(
        claim, AGENT, "{}", command="fake", workdir=".", boundary=Boundary.NONE
    )
    process_id = process.process_id
    await agents.take(process_id, 0, 10, [Settled(offset=0, number=1, can_load=True)], claim)
    await agents.say(claim, process_id, MessageKind.NEW, "{}")
    await agents.take(process_id, 10, 20, [Settled(offset=10, number=2, external_id="x")], claim)
    await agents.say(claim, process_id, MessageKind.PROMPT, "{}")
    return claim, process_id


def bury(node: Home) -> None:
    node.sql(
        "UPDATE workers SET ended_ms = heartbeat_ms, ended_how = 'killed' "
        f"WHERE worker_id = {node.worker.worker_id}"
    )


async def test_a_busy_agent_keeps_its_chat_for_a_while_and_is_then_given_up(nodes: Nodes) -> None:
    dead, living = nodes
    claim, process_id = await prompted_at(dead)
    bury(dead)

    verdict = await living.recover(claim.turn_id)
    assert (verdict.kind, verdict.rule) == (VerdictKind.STAND, "host-away")
    living.clock.move(DAY_MS // 24)
    assert (await living.recover(claim.turn_id)).rule != "host-away"
    await living.wait_until_due()
    again = await living.claim()
    standing = await living.store.agents.standing(again, AGENT)
    assert isinstance(next_move(standing, None), LoseAgent)

    await living.store.agents.drained(process_id, begun=True, is_away=True)

    standing = await living.store.agents.standing(again, AGENT)
    assert standing.is_prompt_away
    assert isinstance(next_move(standing, None), Start)
    process = await living.store.processes.get(process_id)
    assert process is not None
    assert process.is_end_asked, "its node ends it when it is back"
    late = Settled(offset=20, number=3, stop="end_turn")
    assert not await living.store.agents.take(process_id, 20, 30, [late])


async def test_an_idle_agent_keeps_no_chat(nodes: Nodes) -> None:
    dead, living = nodes
    claim, process_id = await prompted_at(dead)
    settled = Settled(offset=20, number=3, stop="end_turn")
    await dead.store.agents.take(process_id, 20, 30, [settled], claim)
    await dead.answer(claim, "done")
    bury(dead)

    dead.sql("UPDATE sessions SET node = 'a'")
    await living.say("and then?", key="second")
    again = await living.claim()

    standing = await living.store.agents.standing(again, AGENT)
    assert isinstance(next_move(standing, None), Start)
