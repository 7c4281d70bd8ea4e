"""A process is a row before it is anything else, and its end is stored once."""

from dataclasses import replace

import pytest
from anyio import create_task_group

from koboshi.domain.command import Command, CommandName, Response, SessionFacts
from koboshi.domain.errors import BackgroundFull, Fenced
from koboshi.domain.ids import CallId, ProcessId, TurnId
from koboshi.domain.process import Birth, Process, ProcessState
from koboshi.domain.session import Busy, Settings
from koboshi.domain.transcript import Effect, Result, ResultStatus
from koboshi.domain.turn import Claim
from koboshi.ports.store import Arrival
from koboshi.ports.wakeups import PROCESSES
from tests.harness.fake_time import DAY_MS, HOUR_MS, SECOND_MS
from tests.harness.homes import Home, a_call

BIRTH = Birth(boot_id="boot/1", pid=4712, start_ticks=99)


async def begin(home: Home, claim: Claim, command: str, *, is_foreground: bool = True) -> Process:
    (call_id,) = await home.propose(claim, a_call("terminal", effect=Effect.RESUMABLE))
    await home.start(claim, call_id)
    return await home.store.processes.begin(
        claim, call_id, command=command, workdir="src", is_foreground=is_foreground
    )


async def get(home: Home, process_id: ProcessId) -> Process:
    process = await home.store.processes.get(process_id)
    assert process is not None
    return process


async def end(home: Home, process_id: ProcessId, code: int = 0) -> None:
    await home.store.processes.ended(
        process_id,
        ProcessState.EXITED,
        exit_code=code,
        reason="it ended by itself",
        ended_ms=home.clock.now_ms(),
    )


async def test_the_intent_is_stored_before_anything_runs(home: Home) -> None:
    """S123, S128: session, generation, turn and call are there when the call returns."""
    claim = await home.work_on()
    process = await begin(home, claim, "make test")
    await home.reopen(crash=True)

    (found,) = await home.store.processes.alive()
    assert replace(found, home=process.home) == process, "a copied home has another id"
    assert (process.state, process.birth) == (ProcessState.STARTING, None)
    assert (process.session_id, process.turn_id) == (claim.session_id, claim.turn_id)
    assert (process.generation, process.command, process.workdir) == (1, "make test", "src")
    assert (process.is_foreground, process.is_end_asked) == (True, False)


async def test_a_call_has_one_process_for_ever(home: Home) -> None:
    """S159: the next life finds the process that its call already has."""
    claim = await home.work_on()
    process = await begin(home, claim, "make test")
    await home.store.processes.born(process.process_id, BIRTH)
    claim = await home.resume(claim.turn_id)
    again = await home.store.processes.begin(
        claim, process.call_id, command="rm -rf .", workdir="/", is_foreground=False
    )

    assert again.process_id == process.process_id
    assert (again.command, again.birth, again.state) == ("make test", BIRTH, ProcessState.RUNNING)
    assert await home.store.processes.find(claim.turn_id, process.call_id) == again


async def test_nothing_is_begun_without_a_claim(home: Home) -> None:
    """S87."""
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call("terminal", effect=Effect.RESUMABLE))
    await home.stop()

    with pytest.raises(Fenced):
        await home.store.processes.begin(
            claim, call_id, command="make", workdir=".", is_foreground=True
        )
    assert await home.store.processes.alive() == ()


async def test_what_a_process_is_known_by_survives_and_does_not_change(home: Home) -> None:
    """S129, S135: a pid is not an identity; the birth is."""
    process = await begin(home, await home.work_on(), "make test")
    await home.store.processes.born(process.process_id, BIRTH)
    other = Birth(boot_id="boot/2", pid=1, start_ticks=1)
    await home.store.processes.born(process.process_id, other)
    await home.reopen(crash=True)

    stored = await get(home, process.process_id)
    assert (stored.state, stored.birth) == (ProcessState.RUNNING, BIRTH)


async def test_an_end_is_stored_once(home: Home) -> None:
    """S112."""
    process = await begin(home, await home.work_on(), "make test")
    home.clock.move(SECOND_MS)
    home.wakeups.hints.clear()
    await end(home, process.process_id, code=2)
    await home.store.processes.ended(
        process.process_id, ProcessState.LOST, exit_code=None, reason="gone", ended_ms=1
    )
    await home.store.processes.born(process.process_id, BIRTH)
    await home.reopen(crash=True)

    stored = await get(home, process.process_id)
    assert (stored.state, stored.exit_code) == (ProcessState.EXITED, 2)
    assert stored.ended_ms == home.clock.now_ms()
    assert await home.store.processes.alive() == ()
    assert PROCESSES in home.wakeups.hints
    ends = [event for event in await home.events() if event.line.subject == "process"]
    assert [event.line.event for event in ends] == ["begun", "ended"]


async def test_a_wish_to_end_it_survives(home: Home) -> None:
    process = await begin(home, await home.work_on(), "make test")
    home.wakeups.hints.clear()
    await home.store.processes.ask_end(process.process_id)
    await home.reopen(crash=True)

    assert (await get(home, process.process_id)).is_end_asked
    assert PROCESSES in home.wakeups.hints


async def begin_both(home: Home) -> tuple[ProcessId, ProcessId, ProcessId]:
    """A background process of an earlier turn, and one of each kind of the running one."""
    claim = await home.work_on("one")
    earlier = await begin(home, claim, "serve", is_foreground=False)
    await home.answer(claim)
    claim = await home.work_on("two")
    front = await begin(home, claim, "make test")
    back = await begin(home, claim, "watch", is_foreground=False)
    return earlier.process_id, front.process_id, back.process_id


async def asked(home: Home, *process_ids: ProcessId) -> list[bool]:
    return [(await get(home, process_id)).is_end_asked for process_id in process_ids]


@pytest.mark.parametrize(
    "way, expected",
    [
        ("stop", [False, True, False]),
        ("stop all", [True, True, True]),
        ("interrupt", [False, True, False]),
    ],
)
async def test_a_turn_that_is_stopped_takes_its_foreground_process_along(
    home: Home, way: str, expected: list[bool]
) -> None:
    """S80, S85: in the same transaction, and the one who ends processes is woken."""
    process_ids = await begin_both(home)
    home.wakeups.hints.clear()
    if way == "interrupt":
        home.configure(await home.session_id(), Settings(busy=Busy.INTERRUPT))
        await home.say("something else")
    else:
        await home.stop(way.removeprefix("stop").strip())

    assert PROCESSES in home.wakeups.hints
    await home.reopen(crash=True)
    assert await asked(home, *process_ids) == expected


@pytest.mark.parametrize("way", ["fail", "give-up", "decline", "move-on", "expire"])
async def test_a_turn_that_ends_without_an_answer_takes_its_foreground_process_along(
    home: Home, way: str
) -> None:
    """S85, S162: its call is said to be over, so no one will wait for it any more."""
    turn = await home.work_on("two")
    front = await begin(home, turn, "make test")
    back = await begin(home, turn, "watch", is_foreground=False)
    match way:
        case "fail":
            await home.store.turns.fail(turn, "it broke")
        case "give-up":
            for _ in range(2):
                await home.resume(turn.turn_id)
            await home.die_and_recover(turn.turn_id)
        case _:
            home.clock.move(2 * HOUR_MS)
            await home.reopen(crash=True)
            home.clock.move(2 * HOUR_MS)
            if way == "move-on":
                await home.say("something else")
            await home.recover(turn.turn_id)
            if way == "decline":
                await home.say("no")
            if way == "expire":
                home.clock.move(DAY_MS)
                await home.store.turns.expire(10)

    assert (await home.view(turn.turn_id)).closed_ms is not None
    assert await asked(home, front.process_id, back.process_id) == [True, False]


async def test_a_stop_in_one_chat_ends_nothing_in_another(home: Home) -> None:
    process = await begin(home, await home.work_on(chat="bob"), "make test")
    await home.work_on(chat="ann")
    await home.stop("all", chat="ann")

    assert await asked(home, process.process_id) == [False]


async def test_what_runs_on_is_told_to_the_caller(home: Home) -> None:
    """S85, S109."""
    earlier, _front, _back = await begin_both(home)
    await end(home, earlier)
    seen: list[SessionFacts] = []

    def watch(_command: Command, facts: SessionFacts) -> Response:
        seen.append(facts)
        return Response(reply="fine")

    command = Command(name=CommandName.STATUS, said="/status")
    await home.accept(Arrival(inbound=home.inbound("/status"), command=command), respond=watch)

    assert seen[0].running_processes == ("p3 watch",)


async def test_the_processes_of_a_session_are_listed_newest_first(home: Home) -> None:
    earlier, front, back = await begin_both(home)
    session_id = await home.session_id()

    processes = await home.store.processes.of_session(session_id, 2)
    assert [process.process_id for process in processes] == [back, front]
    assert earlier in {each.process_id for each in await home.store.processes.alive()}


async def test_what_is_not_there_is_not_found(home: Home) -> None:
    """S110."""
    assert await home.store.processes.get(ProcessId(99)) is None
    assert await home.store.processes.find(TurnId(99), CallId("1.0")) is None
    await home.store.processes.ask_end(ProcessId(99))
    await end(home, ProcessId(99))


async def test_a_process_of_a_turn_that_has_closed_since_is_stranded(home: Home) -> None:
    """No one will take its call up again; whether it was ever started is not known."""
    claim = await home.work_on(chat="ann")
    process = await begin(home, claim, "make test")
    born = await begin(home, claim, "serve", is_foreground=False)
    await home.store.processes.born(born.process_id, BIRTH)
    other = await home.work_on(chat="bob")
    await begin(home, other, "make test")
    assert await home.store.processes.stranded() == ()
    await home.stop(chat="ann")
    await home.reopen(crash=True)

    assert await home.store.processes.stranded() == (process.process_id,)


async def test_a_result_that_shows_how_a_process_ended_reads_its_exit(home: Home) -> None:
    """S113: in the transaction that stores the result; read once."""
    claim = await home.work_on()
    process = await begin(home, claim, "make test")
    await end(home, process.process_id)
    readers = []
    for tool in ("first", "second"):
        (call_id,) = await home.propose(claim, a_call(tool))
        result = Result(call_id=call_id, status=ResultStatus.OK, text="it ended")
        await home.store.turns.finish_call(claim, result, exits_read=[process.process_id])
        readers.append((await get(home, process.process_id)).exit_read_by)
    await home.reopen(crash=True)

    assert readers[0] is not None
    assert readers[0] == readers[1] == (await get(home, process.process_id)).exit_read_by


async def test_the_exit_of_a_process_that_runs_on_is_not_read(home: Home) -> None:
    claim = await home.work_on()
    process = await begin(home, claim, "make test")
    (call_id,) = await home.propose(claim, a_call("poll"))
    result = Result(call_id=call_id, status=ResultStatus.OK, text="it runs")
    await home.store.turns.finish_call(claim, result, exits_read=[process.process_id])

    assert (await get(home, process.process_id)).exit_read_by is None


async def begin_job(home: Home, claim: Claim) -> Process:
    (call_id,) = await home.propose(claim, a_call("terminal", effect=Effect.RESUMABLE))
    await home.start(claim, call_id)
    return await home.store.processes.begin(
        claim, call_id, command="serve", workdir="src", is_foreground=False, background_max=2
    )


async def test_a_session_has_only_so_many_background_processes(home: Home) -> None:
    """Issue 12, B16: counted by session, and only those that run in the background."""
    claim, other = await home.work_on(chat="ann"), await home.work_on(chat="bob")
    first, _ = await begin_job(home, claim), await begin_job(home, claim)
    with pytest.raises(BackgroundFull):
        await begin_job(home, claim)
    await begin_job(home, other)
    await begin(home, claim, "make")
    again = await home.store.processes.begin(
        claim, first.call_id, command="serve", workdir="src", is_foreground=False, background_max=2
    )
    await end(home, first.process_id)
    await begin_job(home, claim)

    assert again == first
    assert len(await home.store.processes.alive()) == 4


async def test_two_calls_side_by_side_cannot_exceed_the_limit(home: Home) -> None:
    """Issue 12, B16: it is counted in the transaction that stores the process."""
    claim = await home.work_on()
    calls = await home.propose(
        claim, *(a_call("terminal", effect=Effect.RESUMABLE) for _ in range(8))
    )
    refused: list[CallId] = []

    async def begin_one(call_id: CallId) -> None:
        try:
            await home.store.processes.begin(
                claim, call_id, command="x", workdir=".", is_foreground=False, background_max=3
            )
        except BackgroundFull:
            refused.append(call_id)

    async with create_task_group() as tasks:
        for call_id in calls:
            tasks.start_soon(begin_one, call_id)

    assert len(await home.store.processes.alive()) == 3
    assert len(refused) == 5


async def test_foreground_commands_are_known_by_their_calls_until_they_end(home: Home) -> None:
    """Issue 12, B10: also after a crash, and also when they were asked to end."""
    claim = await home.work_on()
    command = await begin(home, claim, "make")
    await begin_job(home, claim)
    assert await home.store.processes.commands_running() == {(claim.turn_id, command.call_id)}
    await end(home, command.process_id)

    assert await home.store.processes.commands_running() == frozenset()


async def test_that_what_is_left_of_a_lost_one_is_to_be_ended_is_stored_until_it_is(
    home: Home,
) -> None:
    """Issue 13, A1: over a death, as often as a person asks, and its row is kept meanwhile."""
    claim = await home.work_on()
    process = await begin(home, claim, "make", is_foreground=False)
    process_id = process.process_id
    await home.store.processes.ended(
        process_id, ProcessState.LOST, exit_code=None, reason="lost", ended_ms=home.clock.now_ms()
    )
    await home.stop()
    for _ in range(2):
        await home.store.processes.ask_end(process_id)
        await home.reopen(crash=True)
        assert await home.store.processes.with_remains() == (process_id,)
        home.clock.move(DAY_MS)
        assert await home.store.processes.outdated(home.clock.now_ms(), 0, 10) == ()
        await home.store.processes.remains_ended(process_id)
        assert await home.store.processes.with_remains() == ()

    assert not (await get(home, process_id)).is_end_asked
    assert await home.store.processes.outdated(home.clock.now_ms(), 0, 10) == (process_id,)


async def test_of_one_that_was_seen_to_end_nothing_is_left(home: Home) -> None:
    """Issue 13, A1: what it has started may be meant to live."""
    process = await begin(home, await home.work_on(), "make", is_foreground=False)
    await end(home, process.process_id)
    await home.store.processes.ask_end(process.process_id)

    assert await home.store.processes.with_remains() == ()
