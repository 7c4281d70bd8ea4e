"""Who owns what: a worker until its row has an end, whatever home and node it has."""

import re

from koboshi.domain.command import ActionStanding, OperatorAction
from koboshi.domain.outbox import Delivery
from tests.harness.homes import Home, a_call

OTHER = 77
"""A worker on another node, as another gateway on the same database would be."""


def another_worker(home: Home) -> None:
    home.sql(
        f"INSERT INTO workers (worker_id, host, pid, birth, version, started_ms, heartbeat_ms, "
        f"node, home) VALUES ({OTHER}, 'b', 1, 'x/1', '0.1', 1, 1, 'b', 'elsewhere')",
    )


END = f"UPDATE workers SET ended_ms = heartbeat_ms, ended_how = 'killed' WHERE worker_id = {OTHER}"


async def test_a_turn_is_free_when_its_worker_has_ended(home: Home) -> None:
    """Issue 14, 2: that it is not ours says nothing about it."""
    claim = await home.work_on()
    another_worker(home)
    home.sql(f"UPDATE turns SET worker_id = {OTHER}")
    turns = home.store.turns

    assert await turns.unowned(with_suspended=True) == ()
    assert await turns.recover(claim.turn_id) is None
    assert await turns.will(claim.turn_id, OperatorAction.DROP) is ActionStanding.WORKED_ON
    home.sql(END)
    assert await turns.unowned(with_suspended=False) == (claim.turn_id,)
    assert await turns.recover(claim.turn_id) is not None


async def test_a_delivery_is_free_when_its_worker_has_ended(home: Home) -> None:
    """Issue 14, 2: under a living worker it is on its way, under one that has ended it may have
    arrived."""
    await home.answer(await home.work_on())
    delivery = await home.take_delivery()
    another_worker(home)
    home.sql(f"UPDATE outbox SET worker_id = {OTHER}")
    session_id, worker_id = await home.session_id(), home.worker.worker_id

    assert await home.store.outbox.claim(session_id, worker_id) is None
    assert not await home.store.outbox.drop(delivery.delivery_id)
    home.sql(END)
    again = await home.store.outbox.claim(session_id, worker_id)
    assert isinstance(again, Delivery)
    assert again.is_ambiguous


async def test_a_boot_ends_the_workers_of_its_own_home(home: Home) -> None:
    """Issue 14, 2: one of another home may live."""
    another_worker(home)
    before = home.worker.worker_id
    home.worker = await home.store.workers.start("host", 2, "birth", "0.1")

    ends = {row[0]: row[1] for row in home.sql("SELECT worker_id, ended_how FROM workers")}
    assert ends == {before: "killed", OTHER: None, home.worker.worker_id: None}


async def test_who_owns_a_home_without_a_row_ends_its_workers_first(home: Home) -> None:
    """Issue 14, 2: the command line acts on what a gateway left that was killed."""
    claim = await home.work_on()
    await home.backend.kill(home.store)
    await home.open()
    await home.store.workers.end_left("host", "birth")

    assert home.sql("SELECT ended_how FROM workers") == [("killed",)]
    standing = await home.store.turns.will(claim.turn_id, OperatorAction.DROP)
    assert standing is ActionStanding.LEFT


async def test_rows_tell_their_node_and_home(home: Home) -> None:
    """Issue 14, 2: `workers`, `processes` and `sessions` know where they belong."""
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call())
    assert call_id
    await home.store.processes.begin(
        claim, call_id, command="make", workdir="/", is_foreground=True
    )
    ((own,),) = home.sql("SELECT DISTINCT home FROM workers")

    assert re.fullmatch(r"[0-9a-f]{32}", str(own))
    assert home.sql("SELECT node, home FROM workers") == [("host", own)]
    assert home.sql("SELECT node, home FROM processes") == [("host", own)]
    assert home.sql("SELECT node FROM sessions") == [("host",)]
