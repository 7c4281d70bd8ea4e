"""What is born in a session carries its generation, and what was set aside cannot be marked."""

import json

import pytest

from koboshi.domain.errors import Fenced
from koboshi.domain.process import Birth, ProcessState
from koboshi.domain.transcript import Effect
from koboshi.domain.watch import Finding, WatcherKind, WatcherSpec
from tests.harness.homes import HOOK, WEB, Home, a_call, a_world
from tests.harness.rows import Rows


async def test_a_process_and_its_reports_carry_the_generation_of_their_turn(home: Home) -> None:
    """S88: the claim that a tool is given knows it; so does the process it starts, and so do a
    match and the end of that process, when the person has cut the conversation since."""
    await home.work_on("first")
    await home.stop()
    claim = await home.work_on("second")
    assert claim.generation == 2
    (call_id,) = await home.propose(claim, a_call("terminal", effect=Effect.RESUMABLE))
    await home.start(claim, call_id)
    specs = (WatcherSpec(kind=WatcherKind.MATCH, argument="ready"),)
    processes = home.store.processes
    process = await processes.begin(
        claim, call_id, command="make", workdir=".", is_foreground=False, watchers=specs
    )
    await processes.born(process.process_id, Birth(boot_id="boot", pid=4712, start_ticks=99))
    await home.finish(claim, call_id)
    await home.stop()
    (watcher,) = await processes.watchers(process.process_id)
    assert await processes.report(watcher, Finding(watcher=watcher, output="ready"))
    ended_ms = home.clock.now_ms()
    await processes.ended(
        process.process_id,
        ProcessState.EXITED,
        exit_code=0,
        reason="it exited with code 0",
        ended_ms=ended_ms,
    )

    rows = home.rows()
    assert rows.one("sessions")["generation"] == 3
    assert rows.one("processes")["generation"] == 2
    filed = rows.of("inbox", kind="report")
    assert [entry["generation"] for entry in filed] == [2, 2]
    assert [json.loads(entry["body"])["process_id"] for entry in filed] == [process.process_id] * 2


async def test_a_turn_that_was_set_aside_cannot_be_marked(home: Home) -> None:
    """S28, S77, S78: the one who held it gives it back, or reports its end: refused, and nothing is
    written. A boot that finds it again does not count a death."""
    claim = await home.work_on()
    await home.die_and_recover(claim.turn_id, world=a_world(without=[WEB]))
    before = await home.everything()

    with pytest.raises(Fenced):
        await home.store.turns.release(claim)
    with pytest.raises(Fenced):
        await home.answer(claim)
    assert await home.everything() == before
    await home.die_and_recover(claim.turn_id, world=a_world(without=[WEB]))
    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.recoveries, turn.crash_streak) == ("suspended", 0, 0)


async def test_a_platform_that_comes_back_brings_only_its_own_sessions(home: Home) -> None:
    """S42: two channels, a dead turn on each. The one that is not there is skipped without a word;
    when it is, its turn goes on, and nothing else happens."""
    await home.say(chat="here")
    await home.say(chat="there", channel=HOOK)
    here, there = await home.claims()
    await home.reopen(crash=True, world=a_world(without=[HOOK]))
    rules = [(await home.recover(claim.turn_id)).rule for claim in (here, there)]
    assert rules == ["fresh", "channel-unknown"]
    await home.wait_until_due()
    (claim,) = await home.claims()
    assert claim.turn_id == here.turn_id
    await home.answer(claim)
    await home.deliver("here")
    assert home.rows().of("outbox", turn_id=there.turn_id) == []

    await home.reopen(crash=True, world=a_world())
    found = await home.store.turns.unowned(with_suspended=True)
    assert found == (there.turn_id,)
    await home.recover(there.turn_id)
    await home.wait_until_due()
    assert [claim.turn_id for claim in await home.claims()] == [there.turn_id]


async def test_a_message_costs_the_same_among_few_sessions_and_many(home: Home) -> None:
    """S165: from the message to the delivered answer the same rows are written, and a boot adds one
    row, however many conversations there are."""

    async def costs() -> dict[str, int]:
        before = _sizes(home.rows())
        await home.answer(await home.work_on(chat="ann"))
        await home.deliver("ann")
        after = _sizes(home.rows())
        return {table: after[table] - before[table] for table in after}

    await costs()
    among_few = await costs()
    for number in range(100):
        await home.answer(await home.work_on(chat=f"chat {number}"))
        await home.deliver(f"chat {number}")

    assert await costs() == among_few
    before = _sizes(home.rows())
    await home.reopen(crash=True)
    grown = {table: size - before[table] for table, size in _sizes(home.rows()).items()}
    assert {table for table, size in grown.items() if size} <= {"workers", "journal"}
    assert grown["workers"] == 1


def _sizes(rows: Rows) -> dict[str, int]:
    tables = "workers sessions turns inbox steps calls outbox processes journal".split()
    return {table: len(rows.of(table)) for table in tables}
