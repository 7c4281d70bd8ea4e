"""What belongs to a node that stops, falls silent or goes away, by the clock: when another takes it
over, and when it is given up."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from anyio import create_task_group, move_on_after, sleep_forever

from koboshi.domain.ids import ChannelName, ProcessId
from koboshi.domain.process import Process, ProcessState
from koboshi.domain.transcript import Effect
from koboshi.domain.turn import Claim
from koboshi.domain.worker import EndedHow
from koboshi.ports.channel import Channel
from koboshi.runtime.drain import Drain
from koboshi.runtime.owning import DOWN_SECONDS, Owning
from koboshi.runtime.trust import Trust
from koboshi.runtime.wakeups import LocalWakeups
from tests.harness.fake_time import DAY_MS, HOUR_MS, SECOND_MS, FakeClock
from tests.harness.homes import Home, a_call
from tests.harness.polling import until
from tests.harness.postgres_backend import Database, PostgresBackend

MINUTE_MS = 60 * SECOND_MS
TOLD_MS = 5 * MINUTE_MS


@dataclass(slots=True)
class Two:
    """Two nodes by one clock."""

    a: Home
    b: Home
    clock: FakeClock

    async def look_elsewhere(self) -> None:
        await self.b.store.processes.look_elsewhere(told_ms=TOLD_MS, lost_ms=DAY_MS)

    async def a_dies(self) -> None:
        """B finds it silent, and ends its worker."""
        await self.a.store.close()
        (sign,) = await self.b.store.workers.others(self.b.worker.worker_id)
        assert await self.b.store.workers.bury(sign)

    async def get(self, process_id: ProcessId) -> Process:
        found = await self.b.store.processes.get(process_id)
        assert found is not None
        return found


@pytest.fixture
async def two(database: Database, tmp_path: Path) -> AsyncIterator[Two]:
    clock = FakeClock()
    a, b = (
        Home(PostgresBackend(tmp_path / name, database=database, node=name), clock)
        for name in ("a", "b")
    )
    for node in (a, b):
        await node.boot()
    yield Two(a, b, clock)
    for node in (a, b):
        await node.store.close()


async def begin(home: Home, claim: Claim) -> ProcessId:
    (call_id,) = await home.propose(claim, a_call("terminal", effect=Effect.RESUMABLE))
    await home.start(claim, call_id)
    process = await home.store.processes.begin(
        claim, call_id, command="make", workdir="", is_foreground=False
    )
    await home.finish(claim, call_id)
    return process.process_id


# ── turns ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_drain_hands_a_chat_over_at_once(two: Two) -> None:
    claim = await two.a.work_on("first")
    assert await two.b.claims() == ()
    await two.a.store.workers.begin_drain(two.a.worker.worker_id)
    await two.a.store.turns.release(claim)

    assert [each.turn_id for each in await two.b.claims()] == [claim.turn_id]


async def test_a_drain_hands_a_chat_with_a_process_over_after_a_minute(two: Two) -> None:
    """A restart takes both up again; a node that stays away keeps no person waiting for longer."""
    claim = await two.a.work_on("first")
    await begin(two.a, claim)
    await two.a.store.workers.begin_drain(two.a.worker.worker_id)
    await two.a.store.turns.release(claim)
    assert await two.b.claims() == (), "the process can be reached only there"
    await two.a.store.workers.end(two.a.worker.worker_id, EndedHow.STOPPED)

    two.clock.move(59 * SECOND_MS)
    assert await two.b.claims() == ()
    two.clock.move(2 * SECOND_MS)

    assert [each.turn_id for each in await two.b.claims()] == [claim.turn_id]


async def test_a_node_that_claims_nothing_keeps_no_chat_for_longer_than_a_minute(two: Two) -> None:
    await two.a.answer(await two.a.work_on("first"))
    await two.a.deliver()
    await two.a.say("second")

    two.clock.move(59 * SECOND_MS)
    assert await two.b.claims() == (), "a chat stays at its node while that lives"
    two.clock.move(2 * SECOND_MS)

    assert len(await two.b.claims()) == 1


# ── accounts ────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Line:
    """A channel that can be in trouble."""

    name: ChannelName
    trouble: str | None = None

    async def receive(self, _channel: object) -> None:
        await sleep_forever()


def owning(home: Home) -> Owning:
    wakeups = LocalWakeups()
    return Owning(
        store=home.store,
        wakeups=wakeups,
        clock=home.clock,
        worker_id=home.worker.worker_id,
        trust=Trust(),
        drain=Drain(wakeups=wakeups, seconds=1),
        poll_seconds=0.01,
    )


async def test_an_owner_whose_channel_is_down_for_a_minute_hands_the_account_over(two: Two) -> None:
    name = ChannelName("telegram:main")
    await two.a.store.inbox.bind({name: "bot"})
    here, there = owning(two.a), owning(two.b)
    line, other = Line(name), Line(name)
    async with create_task_group() as tasks:
        tasks.start_soon(here.keep, cast(Channel, line), line.receive)
        await until(lambda: here.epoch_of(name), "A has it")
        tasks.start_soon(there.keep, cast(Channel, other), other.receive)
        await until(lambda: name in there.exclusive, "B wants it")
        line.trouble = "no route to the platform"
        two.clock.move(SECOND_MS)
        with move_on_after(0.1):
            await until(lambda: there.epoch_of(name), "B has it")
        assert here.epoch_of(name) == 1, "a moment of trouble hands nothing over"
        two.clock.move(round(DOWN_SECONDS * 1_000) + SECOND_MS)
        await until(lambda: there.epoch_of(name), "B has it")
        assert here.epoch_of(name) is None
        assert (await two.b.store.accounts.owners())[name] == two.b.worker.worker_id
        tasks.cancel_scope.cancel()


# ── processes ───────────────────────────────────────────────────────────────────────────────────


async def a_job_of_a(two: Two) -> ProcessId:
    claim = await two.a.work_on("first")
    process_id = await begin(two.a, claim)
    await two.a.answer(claim)
    await two.a.deliver()
    return process_id


async def test_a_process_whose_node_is_away_for_a_day_is_lost_and_told_of_once(two: Two) -> None:
    process_id = await a_job_of_a(two)
    await two.a_dies()

    told = []
    for hours in (1, 22, 1):
        two.clock.move(hours * HOUR_MS - SECOND_MS)
        for _ in range(2):
            await two.look_elsewhere()
            assert (await two.get(process_id)).ended_ms is None
            told += await two.b.deliver()
    assert ["cannot be reached" in each.text for each in told] == [True]

    two.clock.move(3 * SECOND_MS)
    for _ in range(2):
        await two.look_elsewhere()
    assert (await two.get(process_id)).state is ProcessState.LOST
    (report,) = two.b.rows().of("inbox", kind="report")
    assert "did not come back" in str(report["body"])

    # It comes back after all: what it says now changes nothing, and no person hears it twice.
    await two.a.boot()
    assert await two.a.store.processes.alive() == ()
    end = two.a.store.processes.ended
    await end(process_id, ProcessState.EXITED, exit_code=0, reason="late", ended_ms=1)
    assert (await two.get(process_id)).state is ProcessState.LOST
    assert len(two.b.rows().of("inbox", kind="report")) == 1


async def test_a_node_that_is_back_before_adopts_its_process_and_tells_its_true_end(
    two: Two,
) -> None:
    process_id = await a_job_of_a(two)
    await two.a_dies()
    two.clock.move(23 * HOUR_MS)
    await two.look_elsewhere()

    await two.a.boot()
    two.clock.move(2 * HOUR_MS)
    await two.look_elsewhere()
    assert [each.process_id for each in await two.a.store.processes.alive()] == [process_id]
    assert await two.b.store.processes.alive() == (), "no other node looks after it"

    await two.a.store.processes.ended(
        process_id,
        ProcessState.EXITED,
        exit_code=3,
        reason="it ended by itself",
        ended_ms=two.clock.now_ms(),
    )
    found = await two.get(process_id)
    assert (found.state, found.exit_code) == (ProcessState.EXITED, 3)
    assert len(two.a.rows().of("inbox", kind="report")) == 1
