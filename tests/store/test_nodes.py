"""Who owns what: a worker until its row has an end, whatever home and node it has."""

import re
from pathlib import Path

import apsw
import pytest

from koboshi.clock import SystemClock
from koboshi.domain.command import OperatorAction, Standing
from koboshi.domain.outbox import Delivery
from koboshi.stores.home_id import ID_NAME
from koboshi.stores.sqlite.looking import looked_at
from tests.store.homes import Home, SqliteBackend, a_call, a_world

OTHER = 77
"""A worker on another node, as another gateway on the same database would be."""


def changed(home: Home, *statements: str) -> list[tuple[object, ...]]:
    """Do something to the database behind the back of the store; the rows of the last statement."""
    assert isinstance(home.backend, SqliteBackend)
    connection = apsw.Connection(str(home.backend.path / "koboshi.db"))
    connection.set_busy_timeout(5_000)
    rows = [connection.execute(each).fetchall() for each in statements]
    connection.close()
    return rows[-1]


def another_worker(home: Home) -> None:
    changed(
        home,
        f"INSERT INTO workers (worker_id, host, pid, birth, version, started_ms, heartbeat_ms, "
        f"node, home) VALUES ({OTHER}, 'b', 1, 'x/1', '0.1', 1, 1, 'b', 'elsewhere')",
    )


END = f"UPDATE workers SET ended_ms = heartbeat_ms, ended_how = 'killed' WHERE worker_id = {OTHER}"


async def test_a_turn_is_free_when_its_worker_has_ended(home: Home) -> None:
    """Issue 14, 2: that it is not ours says nothing about it."""
    claim = await home.work_on()
    another_worker(home)
    changed(home, f"UPDATE turns SET worker_id = {OTHER}")
    turns = home.store.turns

    assert await turns.unowned(with_suspended=True) == ()
    assert await turns.recover(claim.turn_id) is None
    assert await turns.will(claim.turn_id, OperatorAction.DROP) is Standing.WORKED_ON
    changed(home, END)
    assert await turns.unowned(with_suspended=False) == (claim.turn_id,)
    assert await turns.recover(claim.turn_id) is not None


async def test_a_delivery_is_free_when_its_worker_has_ended(home: Home) -> None:
    """Issue 14, 2: under a living worker it is on its way, under one that has ended it may have
    arrived."""
    await home.answer(await home.work_on())
    delivery = await home.take_delivery()
    another_worker(home)
    changed(home, f"UPDATE outbox SET worker_id = {OTHER}")
    session_id, worker_id = await home.session_id(), home.worker.worker_id

    assert await home.store.outbox.claim(session_id, worker_id) is None
    assert not await home.store.outbox.drop(delivery.delivery_id)
    changed(home, END)
    again = await home.store.outbox.claim(session_id, worker_id)
    assert isinstance(again, Delivery)
    assert again.is_ambiguous


async def test_a_boot_ends_the_workers_of_its_own_home(home: Home) -> None:
    """Issue 14, 2: one of another home may live. (At the next open the database of this home knows
    no other: what it has of one was brought here.)"""
    another_worker(home)
    before = home.worker.worker_id
    home.worker = await home.store.workers.start("host", 2, "birth", "0.1")

    ends = {row[0]: row[1] for row in changed(home, "SELECT worker_id, ended_how FROM workers")}
    assert ends == {before: "killed", OTHER: None, home.worker.worker_id: None}
    await home.reopen()
    ends = {row[0]: row[1] for row in changed(home, "SELECT worker_id, ended_how FROM workers")}
    assert ends[OTHER] == "killed"


async def test_who_owns_a_home_without_a_row_ends_its_workers_first(home: Home) -> None:
    """Issue 14, 2: the command line acts on what a gateway left that was killed."""
    claim = await home.work_on()
    await home.backend.kill(home.store)
    await home.open()
    await home.store.workers.end_left("host", "birth")

    assert changed(home, "SELECT ended_how FROM workers") == [("killed",)]
    standing = await home.store.turns.will(claim.turn_id, OperatorAction.DROP)
    assert standing is Standing.LEFT


async def test_a_look_at_an_idle_home_sees_its_workers_as_gone_and_changes_nothing(
    home: Home,
) -> None:
    """Issue 14, 2: what a killed gateway worked on was interrupted, and is not worked on."""
    claim = await home.work_on()
    await home.backend.kill(home.store)
    assert isinstance(home.backend, SqliteBackend)
    rows = "SELECT (SELECT count(*) FROM journal), ended_ms FROM workers"
    before = changed(home, rows)

    place = home.backend.path
    with looked_at(place, world=a_world(), clock=SystemClock(), who="a test") as views:
        seen = await views.explain(claim.turn_id)
    assert seen is not None
    assert seen.turn.stands == "interrupted: the gateway died over it"
    assert changed(home, rows) == before
    await home.open()


async def test_rows_tell_their_node_and_home(home: Home) -> None:
    """Issue 14, 2: `workers`, `processes` and `sessions` know where they belong."""
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call())
    assert call_id
    await home.store.processes.begin(
        claim, call_id, command="make", workdir="/", is_foreground=True
    )
    assert isinstance(home.backend, SqliteBackend)
    own = (home.backend.path / ID_NAME).read_text().strip()

    assert re.fullmatch(r"[0-9a-f]{32}", own)
    assert changed(home, "SELECT node, home FROM workers") == [("host", own)]
    assert changed(home, "SELECT node, home FROM processes") == [("host", own)]
    assert changed(home, "SELECT node FROM sessions") == [("host",)]


@pytest.mark.parametrize("content", [None, "", "no id", "\0" * 40])
async def test_the_id_of_a_home_stays_and_is_made_anew_where_it_is_none(
    home: Home, content: str | None
) -> None:
    """Issue 14, 2: with another id the home is still the owner of all that its database knows."""
    assert isinstance(home.backend, SqliteBackend)
    file: Path = home.backend.path / ID_NAME
    first = file.read_text()
    await home.reopen(crash=False)
    assert file.read_text() == first
    await home.store.close()
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    await home.boot()

    assert file.read_text() not in (first, content)
    assert file.stat().st_mode & 0o777 == 0o600
    homes = changed(home, "SELECT DISTINCT home FROM workers")
    assert homes == [(file.read_text().strip(),)]
