"""An agent that writes and does not answer when it is to begin: it is found silent all the same."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from koboshi.agents.acp.language import AcpLanguage
from koboshi.clock import SystemClock
from koboshi.domain.agent import AgentProcess, GiveUpAgent, MessageKind, ReadOn, Serve, next_move
from koboshi.domain.sandbox import Boundary
from koboshi.domain.turn import Claim
from koboshi.ports.runners import CommandSpec
from koboshi.processes.runners import LocalRunners
from koboshi.processes.wires import LocalWires
from koboshi.runtime.agent_reading import AgentReader
from koboshi.runtime.agent_sight import AgentSights
from tests.harness.backends import SqliteBackend
from tests.harness.homes import Home
from tests.harness.polling import until, until_asked

ANSWER_MS_MAX = 1_000


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    one = Home(backend=SqliteBackend(tmp_path / "home"))
    await one.boot()
    yield one
    await one.store.close()


@pytest.mark.parametrize(
    "command",
    [
        "printf 'Update now? [y/N] '; cat > /dev/null",
        "yes chatter",
        """while :; do echo '{"id":"a","method":"x","params":{}}'; sleep 0.02; done""",
    ],
    ids=["half a line", "lines", "requests"],
)
async def test_an_agent_that_writes_and_never_answers_is_found_silent(
    home: Home, tmp_path: Path, command: str
) -> None:
    """A question to a person at a terminal, an endless log, and requests without end."""
    runners, claim = LocalRunners(tmp_path / "processes"), await home.work_on()
    begun = await home.store.agents.begin(
        claim, "fake", "{}", command=command, workdir="/", boundary=Boundary.NONE
    )
    spec = CommandSpec(
        command=command,
        workdir="/",
        environment={"PATH": "/usr/bin:/bin"},
        timeout_seconds=float("inf"),
        takes_input=False,
        unread_max=1 << 20,
    )
    wires = LocalWires(runners.folder)
    reader = AgentReader(
        store=home.store,
        wires=wires,
        clock=SystemClock(),
        language=AcpLanguage(),
        process_id=begun.process_id,
        line_bytes_max=1 << 16,
    )
    sights = AgentSights(
        processes=home.store.processes,
        runners=runners,
        wires=wires,
        clock=home.clock,
        answer_ms_max=ANSWER_MS_MAX,
    )
    await runners.start(begun.process_id, spec)
    try:
        wires.post(begun.process_id, 1, b"{}\n")
        await until(lambda: wires.fed(begun.process_id, 1), "it is fed")
        await until(lambda: wires.size(begun.process_id) > 0, "it writes")
        assert isinstance(await move(home, claim, sights, reader), ReadOn)
        home.clock.move(2 * ANSWER_MS_MAX)

        async def look() -> GiveUpAgent | None:
            found = await move(home, claim, sights, reader)
            return found if isinstance(found, GiveUpAgent) else None

        found = await until_asked(look, "it is given up")
    finally:
        await runners.end(begun.process_id, grace_s=0)

    assert (found.rule, found.ends_it) == ("agent-silent", True)
    assert found.awaited is not None
    assert found.awaited.kind is MessageKind.INITIALIZE


async def move(home: Home, claim: Claim, sights: AgentSights, reader: AgentReader) -> object:
    """What is done next, as a turn does it."""
    process = await process_of(home, claim)
    sight = await sights.look(process, reader.looked_at)
    standing = await home.store.agents.standing(claim, "fake")
    found = next_move(standing, sight, sights.answer_ms_max)
    if isinstance(found, ReadOn):
        await reader.read(process.read_offset, claim, is_alive=sight.is_alive)
    if isinstance(found, Serve):
        await home.store.agents.reply(found.request, "{}", "outside of a turn")
    return found


async def process_of(home: Home, claim: Claim) -> AgentProcess:
    process = (await home.store.agents.standing(claim, "fake")).process
    assert process is not None
    return process
