"""Many callers share one commit, and none of them notices the others."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import apsw
import pytest
from anyio import CancelScope, create_task_group, fail_after
from anyio.lowlevel import checkpoint

from koboshi.domain.command import Command, CommandName, Response, SessionFacts
from koboshi.domain.errors import Fenced
from koboshi.domain.transcript import Effect, Need
from koboshi.ports.store import Arrival
from koboshi.stores.batch_writer import Submitted
from koboshi.stores.sqlite.store import SqliteStore
from koboshi.stores.sqlite.writer import SqliteWriter
from tests.harness.backends import IMPATIENT, SqliteBackend
from tests.harness.homes import Home, a_call
from tests.harness.polling import WITHIN_S, until

STATUS = Command(name=CommandName.STATUS, said="/status")


def commits(home: Home) -> int:
    assert isinstance(home.store, SqliteStore)
    return home.store.commits


@asynccontextmanager
async def busy_writer(home: Home) -> AsyncIterator[None]:
    """The writer is in the middle of a commit as long as the block lasts: everything that is
    submitted meanwhile makes the next one. A command's reply is made inside the transaction, so a
    reply that is slow to come holds it up."""
    entered, leave = threading.Event(), threading.Event()

    def slowly(_command: Command, _facts: SessionFacts) -> Response:
        entered.set()
        assert leave.wait(WITHIN_S), "the test forgot to let go"
        return Response(reply="fine")

    arrival = Arrival(inbound=home.inbound("/status", chat="slow"), command=STATUS)
    async with create_task_group() as tasks:
        tasks.start_soon(partial(home.accept, arrival, respond=slowly))
        try:
            await until(entered.is_set, "the writer is at work")
            yield
        finally:
            leave.set()


async def settle_down() -> None:
    """Every caller who can has submitted."""
    for _ in range(10):
        await checkpoint()


async def test_what_is_submitted_during_a_commit_shares_the_next(home: Home) -> None:
    before = commits(home)
    async with create_task_group() as tasks, busy_writer(home):
        for number in range(100):
            tasks.start_soon(partial(home.say, chat=f"chat {number}"))
        await settle_down()
        assert commits(home) == before

    assert commits(home) == before + 2
    assert (await home.store.views.status()).turns == {"queued": 100}


async def test_a_quiet_store_commits_at_once(home: Home) -> None:
    before = commits(home)
    for _ in range(5):
        await home.say()

    assert commits(home) == before + 5


async def test_a_batch_is_bounded(tmp_path: Path) -> None:
    home = Home(backend=SqliteBackend(tmp_path, replace(IMPATIENT, batch_max=10)))
    await home.open()
    async with create_task_group() as tasks, busy_writer(home):
        for number in range(35):
            tasks.start_soon(partial(home.say, chat=f"chat {number}"))
        await settle_down()

    assert commits(home) == 1 + 4
    await home.store.close()


async def test_operations_are_carried_out_in_the_order_they_came(home: Home) -> None:
    """S97, S158."""
    async with create_task_group() as tasks, busy_writer(home):
        for number in range(50):
            tasks.start_soon(partial(home.say, f"message {number}"))
            await settle_down()

    bodies = [event.body for event in await home.events() if event.line.event == "accepted"]
    assert [getattr(body, "text", "") for body in bodies] == [
        f"message {number}" for number in range(50)
    ]


async def test_every_caller_waits_for_the_commit_that_carries_its_operation(home: Home) -> None:
    """S162: no caller is answered before the disk has it; the one who is told finds it there."""
    assert isinstance(home.backend, SqliteBackend)
    other = apsw.Connection(str(home.backend.path / "koboshi.db"), flags=apsw.SQLITE_OPEN_READONLY)
    told: list[bool] = []

    async def say(number: int) -> None:
        receipt = await home.say(chat=f"chat {number}")
        query = "SELECT count(*) FROM inbox WHERE entry_id = ?"
        told.append(other.execute(query, (receipt.entry_id,)).get == 1)

    async with create_task_group() as tasks, busy_writer(home):
        for number in range(20):
            tasks.start_soon(say, number)
        await settle_down()
        assert told == []

    other.close()
    assert told == [True] * 20


async def test_a_failure_is_its_callers_alone(home: Home) -> None:
    """A broken rule, a lost claim and a bug in one commit with what is right."""
    claim = await home.work_on(chat="ann")
    gated = a_call("rm", effect=Effect.ONCE, need=Need.APPROVAL)
    (call_id,) = await home.propose(claim, gated)
    lost = await home.work_on(chat="bob")
    await home.stop(chat="bob")
    before, failures = commits(home), list[type[BaseException]]()

    def breaks(_command: Command, _facts: SessionFacts) -> Response:
        raise ZeroDivisionError

    async def expect_failure(write: Callable[[], Awaitable[object]]) -> None:
        try:
            await write()
        except (apsw.ConstraintError, Fenced, ZeroDivisionError) as error:
            failures.append(type(error))

    broken = (
        Arrival(inbound=home.inbound("never stored", chat="dan")),
        Arrival(inbound=home.inbound("/status", chat="dan"), command=STATUS),
    )
    async with create_task_group() as tasks, busy_writer(home):
        tasks.start_soon(home.say, "first")
        tasks.start_soon(expect_failure, lambda: home.start(claim, call_id))
        tasks.start_soon(expect_failure, lambda: home.answer(lost))
        tasks.start_soon(expect_failure, lambda: home.accept(*broken, respond=breaks))
        tasks.start_soon(partial(home.say, "last", chat="cat"))
        await settle_down()

    assert commits(home) == before + 2
    assert set(failures) == {apsw.ConstraintError, Fenced, ZeroDivisionError}
    assert [turn.request for turn in await home.turns("cat")] == ["last"]
    assert await home.events("dan") == []
    assert (await home.store.turns.load(claim)).calls[0].started_ms is None


async def test_a_caller_that_is_cancelled_has_written_all_the_same(home: Home) -> None:
    """Cancelling neither withdraws the write nor loses it, and the others do not notice."""
    scope, receipts = CancelScope(), []

    async def cancelled() -> None:
        with scope:
            receipts.append(await home.say("cancelled", chat="ann"))
            await checkpoint()
            raise AssertionError("the cancellation was swallowed")

    async with create_task_group() as tasks, busy_writer(home):
        tasks.start_soon(cancelled)
        tasks.start_soon(partial(home.say, "beside it", chat="bob"))
        await settle_down()
        scope.cancel()
        await settle_down()

    assert scope.cancelled_caught
    assert len(receipts) == 1, "it waited for its commit"
    assert [turn.request for turn in await home.turns("ann")] == ["cancelled"]
    assert [turn.request for turn in await home.turns("bob")] == ["beside it"]


async def test_a_cancellation_that_meets_the_answer_loses_neither(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is in the queue of the loop, before what wakes the cancelled caller."""
    told, answer = threading.Event(), SqliteWriter._answer

    def noted(writer: SqliteWriter, batch: list[Submitted], hints: set[str]) -> None:
        answer(writer, batch, hints)
        told.set()

    monkeypatch.setattr(SqliteWriter, "_answer", noted)
    scope, receipts = CancelScope(), []

    async def cancelled() -> None:
        with scope:
            receipts.append(await home.say("cancelled"))
            await checkpoint()
            raise AssertionError("the cancellation was swallowed")

    with fail_after(20):
        async with create_task_group() as tasks:
            tasks.start_soon(cancelled)
            await checkpoint()
            assert told.wait(20)  # the loop stands still
            scope.cancel()

    assert scope.cancelled_caught
    assert len(receipts) == 1
    assert [turn.request for turn in await home.turns()] == ["cancelled"]


async def test_a_caller_that_was_cancelled_before_it_asked_has_its_answer_too(home: Home) -> None:
    receipts = []
    with CancelScope() as scope:
        scope.cancel()
        receipts.append(await home.say("late"))
        await checkpoint()
        raise AssertionError("the cancellation was swallowed")

    assert scope.cancelled_caught
    assert len(receipts) == 1
    assert [turn.request for turn in await home.turns()] == ["late"]


async def test_a_cancelled_caller_hears_of_its_failure(home: Home) -> None:
    lost = await home.work_on(chat="bob")
    await home.stop(chat="bob")

    with CancelScope() as scope:
        scope.cancel()
        with pytest.raises(Fenced):
            await home.answer(lost)


async def test_a_task_that_is_torn_down_from_outside_has_written_all_the_same(home: Home) -> None:
    """A loop that ends cancels its tasks without asking any scope."""
    tasks = asyncio.get_running_loop()
    async with busy_writer(home):
        torn = tasks.create_task(home.say("torn", chat="ann"))
        kept = tasks.create_task(home.say("kept", chat="bob"))
        await settle_down()
        torn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await torn
    await kept

    assert [turn.request for turn in await home.turns("ann")] == ["torn"]
    assert [turn.request for turn in await home.turns("bob")] == ["kept"]


async def test_hints_are_given_after_the_commit(home: Home) -> None:
    home.wakeups.hints.clear()
    async with create_task_group() as tasks, busy_writer(home):
        tasks.start_soon(home.say)
        await settle_down()
        assert home.wakeups.hints == []

    assert "turns" in home.wakeups.hints


async def test_a_command_that_fails_wakes_nothing_to_deliver(home: Home) -> None:
    claim = await home.work_on()
    await home.stop()
    home.wakeups.hints.clear()
    with pytest.raises(Fenced):
        await home.store.turns.fail(claim, "too late")

    assert "outbox" not in home.wakeups.hints


# ── the end ─────────────────────────────────────────────────────────────────────────────────────


async def test_closing_finishes_what_was_submitted(home: Home) -> None:
    async with create_task_group() as tasks, busy_writer(home):
        for number in range(20):
            tasks.start_soon(partial(home.say, chat=f"chat {number}"))
        await settle_down()
        tasks.start_soon(home.store.close)
        await settle_down()
    await home.boot()

    assert (await home.store.views.status()).turns == {"queued": 20}


@pytest.mark.parametrize("verb", ["write", "read"])
async def test_a_closed_store_refuses_at_once(home: Home, verb: str) -> None:
    """The one who comes too late must not wait for ever."""
    await home.store.close()
    with fail_after(60), pytest.raises(RuntimeError, match="closed"):
        await (home.say() if verb == "write" else home.store.views.status())
    await home.boot()


async def test_closing_twice_closes_once(home: Home) -> None:
    """The number of a closed file may belong to another one by now."""
    await home.store.close()
    with open("/dev/null") as file:
        await home.store.close()
        assert file.read() == ""
    await home.boot()
