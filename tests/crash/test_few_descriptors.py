"""Issue 12, A4: the gateway runs out of descriptors between the start of a call and its result. A
command that did run is never reported as failed, and never runs twice."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.crash.telling import checked
from tests.harness.http import connection
from tests.harness.modelled import CHAT, Modelled, gate, modelled, run, waits
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.tally import WANTS_ALL
from tests.models.forms import OPENAI

MISSING = "Too many open files"
WAITS = "no file descriptors are left"
"""Said of a turn that wants one before it has a command to start."""


@contextmanager
def few_descriptors(gateway: GatewayProcess, left: int = 0) -> Iterator[None]:
    """While the block lasts, the gateway can open only so many files more."""
    soft, hard = resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE)
    used = {int(each.name) for each in Path(f"/proc/{gateway.pid}/fd").iterdir()}
    free = sorted(set(range(len(used) + left + 1)) - used)
    # The lowest three are always taken. What it closes in the meantime makes room for nothing then.
    limit = free[left] if left else 3
    resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (soft, hard))


def has_noticed(gateway: GatewayProcess) -> bool:
    return MISSING in gateway.log or WAITS in gateway.log


async def begun(it: Modelled) -> None:
    """The command has written its first line and waits at the gate."""
    it.server.answers.append(it.proposes(run(waits())))
    await it.person.say("do it", "1")
    await it.until_lines("begun")


@pytest.mark.parametrize("left", range(4) if WANTS_ALL else (0, 1))
async def test_a_command_that_ends_while_there_are_none_is_reported_as_it_ended(
    home: Path, left: int
) -> None:
    """Red before with none left: `terminal failed: OSError`, and the model runs it again."""
    async with modelled(home, OPENAI) as it, gate(it) as door:
        await begun(it)
        with few_descriptors(it.gateway, left):
            door.open()
            await until(it.process_file("exit.json").exists, "the command has ended")
            if left == 0:
                await until(lambda: MISSING in it.gateway.log, "the gateway notices")
            it.server.answers.append(it.says("it ended with 7"))
        await it.person.hears("it ended with 7")
        rows = await checked(it.life)

    assert it.lines() == ["begun", "on"]
    assert it.results() == [
        {"status": "exited", "process_id": "p1", "exit_code": 7, "output": "the word is on\n"}
    ]
    assert rows.one("calls")["outcome"] == "ok"
    assert rows.one("processes")["state"] == "exited"


async def test_a_stop_ends_the_trying(home: Path) -> None:
    async with modelled(home, OPENAI) as it, gate(it) as door:
        await begun(it)
        address = await it.gateway.wait_listening()
        async with connection(address, it.gateway.token) as open_line:
            assert (await open_line.get("/readyz")).status_code == 200
            with few_descriptors(it.gateway):
                door.open()
                await until(lambda: MISSING in it.gateway.log, "the gateway notices")
                posted = await open_line.post(
                    f"/api/v1/sessions/{CHAT}/messages",
                    json={"text": "/stop", "thread": ""},
                    headers={"Idempotency-Key": "2"},
                )
                assert posted.status_code == 202
                await it.person.hears("Stopped")
        rows = await checked(it.life)

    assert rows.one("turns")["event"] == "cut"
    assert rows.one("calls")["outcome"] == "unknown"
    assert it.lines() == ["begun", "on"]


async def test_a_restart_takes_up_what_it_could_not_look_at(home: Path) -> None:
    """The gateway is killed while it tries: the next one tells how the command ended."""
    async with modelled(home, OPENAI) as it, gate(it) as door:
        await begun(it)
        with few_descriptors(it.gateway):
            door.open()
            await until(lambda: MISSING in it.gateway.log, "the gateway notices")
        it.server.answers.append(it.says("it ended with 7"))
        await it.restart()
        await it.person.hears("it ended with 7")
        await checked(it.life)

    assert it.lines() == ["begun", "on"]
    assert [result["exit_code"] for result in it.results()] == [7]


@pytest.mark.parametrize("left", range(8) if WANTS_ALL else (0, 2))
async def test_a_command_that_cannot_be_started_is_started_when_it_can_be(
    home: Path, left: int
) -> None:
    """Issue 12, A4: it begins with too few for a runner. The want passes, so it runs once, later.
    Red before with two left: the model was told that it could not be started."""
    async with modelled(home, OPENAI) as it:
        it.server.answers.append(it.says("hello"))
        await it.person.say("hi", "1")
        await it.person.hears("hello")
        address = await it.gateway.wait_listening()
        proposed = it.proposes(run("echo ran >> lines; exit 7"))
        async with connection(address, it.gateway.token) as open_line:
            assert (await open_line.get("/readyz")).status_code == 200
            with few_descriptors(it.gateway, left):
                it.server.answers += [proposed, it.says("so it was")]
                posted = await open_line.post(
                    f"/api/v1/sessions/{CHAT}/messages",
                    json={"text": "do it", "thread": ""},
                    headers={"Idempotency-Key": "2"},
                )
                assert posted.status_code == 202
                await until(
                    lambda: has_noticed(it.gateway) or len(it.server.requests) == 3,
                    "the gateway notices, or has enough",
                )
        await it.person.hears("so it was")
        await checked(it.life)

    (result,) = it.results()
    assert (result["status"], result["exit_code"], it.lines()) == ("exited", 7, ["ran"])
