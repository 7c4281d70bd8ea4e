"""An agent that is just being started: what looks at agents meanwhile does not hinder it, and what
was never started did not die."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest

from koboshi.agents.acp.language import AcpLanguage
from koboshi.control.agents import living_agents
from koboshi.domain.agent import Start, next_move
from koboshi.domain.errors import Fenced
from koboshi.domain.ids import ProcessId
from koboshi.domain.process import ProcessState
from koboshi.domain.sandbox import Boundary
from koboshi.domain.turn import Claim
from koboshi.ports.agents import AgentLanguage
from koboshi.ports.runners import CommandSpec, Life
from koboshi.processes.ends import NEVER_STARTED, ProcessEnds
from koboshi.processes.runners import LocalRunners
from koboshi.processes.wires import LocalWires
from koboshi.runtime.agent_life import AgentLife
from koboshi.runtime.agent_turn import AgentTurns
from tests.agents.agency import Agency
from tests.harness.backends import SqliteBackend
from tests.harness.homes import Home

UNREAD_MAX = 64_000
Look: TypeAlias = Callable[[Home, LocalRunners], Awaitable[object]]


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    one = Home(backend=SqliteBackend(tmp_path / "home"))
    await one.boot()
    yield one
    await one.store.close()


async def begin(home: Home, claim: Claim) -> ProcessId:
    process = await home.store.agents.begin(
        claim, "fake", "{}", command="sleep 60", workdir="/", boundary=Boundary.NONE
    )
    return process.process_id


def spec() -> CommandSpec:
    return CommandSpec(
        command="sleep 60",
        workdir="/",
        environment={"PATH": "/usr/bin:/bin"},
        timeout_seconds=float("inf"),
        takes_input=False,
        unread_max=UNREAD_MAX,
    )


def life_of(home: Home, runners: LocalRunners) -> AgentLife:
    async def language() -> AgentLanguage:
        return AcpLanguage()

    ends = ProcessEnds(
        processes=home.store.processes,
        runners=runners,
        clock=home.clock,
        matcher=lambda _: lambda _: False,
        redact=str,
    )
    not_asked = cast("Any", None)  # what only a turn needs
    turns = AgentTurns(
        store=home.store,
        wires=LocalWires(runners.folder),
        runners=runners,
        store_end=ends.store,
        clock=home.clock,
        drain=not_asked,
        programs=not_asked,
        load_language=language,
        asking=not_asked,
        shipping=not_asked,
        attachments=not_asked,
        recollection=not_asked,
        default="fake",
        room=not_asked,
        line_bytes_max=1_000,
        question_age_ms=1_000,
        start_seconds_of=lambda _: 1.0,
    )
    return AgentLife(
        turns=turns, wakeups=home.wakeups, idle_ms_of=lambda _: 60_000, poll_seconds=1.0
    )


async def look_after_all(home: Home, runners: LocalRunners) -> None:
    await life_of(home, runners).look()


async def show_all(home: Home, runners: LocalRunners) -> None:
    """As `koboshi status`, the page and the metrics do."""
    assert await living_agents(home.store.agents, runners) == ()


@pytest.mark.parametrize("look", [look_after_all, show_all])
async def test_a_look_at_all_agents_lets_one_begin_that_has_no_runner_yet(
    home: Home, tmp_path: Path, look: Look
) -> None:
    """The start is slow: its row is stored, and nothing of it is on the disk."""
    runners = LocalRunners(tmp_path / "processes")
    process_id = await begin(home, await home.work_on())

    await look(home, runners)

    try:
        birth = await runners.start(process_id, spec())
        assert birth is not None
        assert runners.look(process_id).life is Life.ALIVE
        await home.store.processes.born(process_id, birth)
        (shown,) = await living_agents(home.store.agents, runners)
        assert shown.process == f"p{process_id}"
    finally:
        await runners.end(process_id, grace_s=0)


async def test_one_whose_turn_is_over_before_it_has_a_runner_never_begins(
    home: Home, tmp_path: Path
) -> None:
    runners = LocalRunners(tmp_path / "processes")
    claim = await home.work_on()
    process_id = await begin(home, claim)
    await home.stop()

    await look_after_all(home, runners)

    with pytest.raises(FileExistsError):
        await runners.start(process_id, spec())
    assert await home.store.agents.living() == ()
    with pytest.raises(Fenced):
        await home.store.agents.begin(
            claim, "fake", "{}", command="fake", workdir="/", boundary=Boundary.NONE
        )


async def test_one_whose_birth_was_not_stored_is_found_by_its_turn(agency: Agency) -> None:
    """The gateway is killed when the agent has just begun."""
    agency.start(crash_at="processes.born:before")
    await agency.say("wait go", "say a")
    await agency.gateway.wait_exit()
    agency.start()
    await agency.until_done("wait go")

    assert agency.rows("SELECT state, pid > 0 FROM processes") == [("running", 1)]
    (agency.workdir / "go").touch()
    assert await agency.until_answered() == ["a"]
    assert agency.rows("SELECT count(*) FROM processes") == [(1,)]
    assert agency.is_right()


async def test_what_was_never_started_is_no_death_of_the_agent(home: Home) -> None:
    """A gateway died before each start, or descriptors were short. What could not be started for
    another reason counts."""
    claim, agents = await home.work_on(), home.store.agents
    for _ in range(4):
        await ended(home, await begin(home, claim), ProcessState.LOST, NEVER_STARTED)
    standing = await agents.standing(claim, "fake")
    assert standing.deaths == 0
    assert isinstance(next_move(standing, None), Start)

    await ended(home, await begin(home, claim), ProcessState.EXITED, "it could not be started")

    assert (await agents.standing(claim, "fake")).deaths == 1


async def ended(home: Home, process_id: ProcessId, state: ProcessState, reason: str) -> None:
    await home.store.processes.ended(
        process_id, state, exit_code=None, reason=reason, ended_ms=home.clock.now_ms()
    )
    await home.store.agents.drained(process_id, begun=False)
