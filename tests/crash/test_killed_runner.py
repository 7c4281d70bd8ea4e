"""The runner of a command is killed with SIGKILL under a real gateway, and once with its keeper."""

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.cli.process import Gateway, gateway, is_there, koboshi
from tests.cli.process import until as until_found
from tests.crash.telling import checked
from tests.harness.insiders import living_of, true_pid
from tests.harness.lives import KILLED_BY_HAND
from tests.harness.modelled import gate, modelled, run, waits
from tests.harness.rows import glance
from tests.models.forms import OPENAI

HOST = {"KOBOSHI__TOOLS__SANDBOX": "host"}
ESCAPED = "(setsid env -i PATH=$PATH sh -c 'echo $$ > escaped; exec sleep 1000' &); "


def kill(born: dict[str, int], *names: str) -> None:
    for name in names:
        os.kill(born[name], signal.SIGKILL)


@pytest.mark.parametrize("killed", [("pid",), ("keeper_pid", "pid")], ids=["runner", "both"])
@pytest.mark.parametrize("is_down", [False, True], ids=["serving", "down"])
async def test_a_turn_whose_runner_is_killed_goes_on_and_its_command_ends(
    home: Path, killed: tuple[str, ...], is_down: bool
) -> None:
    """Issue 13, A1: the command of a turn, with the gateway there or not. The turn does not wait
    for ever; the command ran once, is told once as lost, and nothing of it lives."""
    async with modelled(home, OPENAI) as it, gate(it):
        it.server.answers += [it.proposes(run(waits())), it.says("it is lost")]
        await it.person.say("do it", "1")
        await it.until_lines("begun")
        born = json.loads(it.process_file("born.json").read_text(encoding="utf-8"))
        if is_down:
            await it.end(KILLED_BY_HAND)
        kill(born, *killed)
        if is_down:
            it.gateway.start()
        await it.person.hears("it is lost")
        assert not living_of(it.process_file("spec").parent), "it is told when nothing lives"
        rows = await checked(it.life)

    assert it.lines() == ["begun"]
    (lost,) = it.results()
    assert lost["status"] == "lost"
    assert lost["reason"].startswith("it was killed together with its runner")
    assert [call["outcome"] for call in rows.calls] == ["unknown"]
    assert it.person.heard()[:-1] == ["it is lost"]


class Job:
    """A command in the background, and a process of it that has left everything behind."""

    def __init__(self, one: Gateway, workdir: Path, more: str = ESCAPED) -> None:
        self.one = one
        arguments = {
            "command": f"echo $$ > shell; {more}echo up; sleep 1000",
            "background": True,
            "notify_on_complete": True,
        }
        items = [{"calls": [{"tool": "terminal", "arguments": arguments}]}, {"text": "left"}]
        one.wait_state(one.say("room", f"script: {json.dumps(items)}"), "done")
        names = ["shell", "escaped"] if more else ["shell"]
        folder = one.home / "processes" / "1"
        self.pids = [until_found(partial(pid_in, folder, workdir / name), name) for name in names]
        self.born: dict[str, int] = json.loads((folder / "born.json").read_text(encoding="utf-8"))

    def until_gone(self) -> None:
        until_found(lambda: not any(map(is_there, self.pids)), "nothing of it lives")

    def until_state(self, state: str) -> dict[str, Any]:
        """The row of the process once it is in that state."""

        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = self.one.explained("p1")
            return found if found["process"]["state"] == state else None

        return until_found(look, state)


def pid_in(folder: Path, file: Path) -> int | None:
    """The pid that a command wrote into the file, as the machine knows it."""
    written = file.read_text(encoding="ascii") if file.exists() else ""
    return true_pid(folder, int(written)) if written.endswith("\n") else None


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return tmp_path / "workdir"


@pytest.fixture
def serving(home: Path, workdir: Path) -> Iterator[Gateway]:
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(workdir)) as one:
        yield one


@pytest.fixture
def on_host(home: Path, workdir: Path) -> Iterator[Gateway]:
    """Without a boundary: inside one, nothing of a command outlives its runner."""
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(workdir), **HOST) as one:
        yield one


def test_a_job_whose_runner_is_killed_is_told_once_and_leaves_nothing(
    serving: Gateway, workdir: Path
) -> None:
    """Issue 13, A1: in the background, with a process that left session and environment behind."""
    job = Job(serving, workdir)

    kill(job.born, "pid")

    job.until_gone()
    job.until_state("lost")
    until_found(lambda: len(serving.explained("p1")["reports"]) == 1, "it is told")


def test_a_job_whose_runner_and_keeper_are_killed_is_ended_by_the_gateway(
    serving: Gateway, workdir: Path
) -> None:
    """Issue 13, A1: no one but the gateway is left to end it, and it is lost only when it is."""
    job = Job(serving, workdir, more="")

    kill(job.born, "keeper_pid", "pid")

    job.until_state("lost")
    assert not is_there(job.pids[0])
    until_found(lambda: len(serving.explained("p1")["reports"]) == 1, "it is told")


@pytest.mark.parametrize("way", ["/stop all", "/jobs kill p1", "processes kill"])
def test_a_command_without_a_runner_can_be_ended_by_a_person(
    home: Path, on_host: Gateway, workdir: Path, way: str
) -> None:
    """Issue 13, A1: the runner is killed and its keeper is put to sleep, so nothing is ended by
    itself. Whatever a person has to end it with does so, and no notice is sent of it."""
    job = Job(on_host, workdir)
    os.kill(job.born["keeper_pid"], signal.SIGSTOP)
    kill(job.born, "pid")
    assert all(map(is_there, job.pids))

    if way == "processes kill":
        assert koboshi("processes", "kill", "p1", home=home).code == 0
    else:
        on_host.say("room", way)

    job.until_gone()
    assert job.until_state("lost")["reports"] == []


@pytest.mark.parametrize("way", ["/jobs kill p1", "processes kill"])
def test_what_is_left_of_a_process_that_was_stored_as_lost_can_be_ended(
    home: Path, on_host: Gateway, workdir: Path, way: str
) -> None:
    """Issue 13, A1: an earlier version stored a process as lost while its command lived on. No one
    says that it has ended, and it is ended."""
    job = Job(on_host, workdir, more="")
    on_host.kill()
    kill(job.born, "keeper_pid", "pid")
    store_as_lost(home)

    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(workdir), **HOST) as later:
        assert is_there(job.pids[0])
        if way == "processes kill":
            said = koboshi("processes", "kill", "p1", home=home).out
        else:
            said = reply_to(later.say("room", way), home)

        job.until_gone()
    assert "already" not in said
    assert "lost" in said


def reply_to(message: str, home: Path) -> str:
    """What a command was answered with."""
    cause = f"command:{message.removeprefix('m')}"
    found = until_found(lambda: glance(home).of("outbox", cause=cause), "its reply")
    return str(found[0]["text"])


def store_as_lost(home: Path) -> None:
    connection = apsw.Connection(str(home / "koboshi.db"))
    connection.execute("UPDATE processes SET state = 'lost', ended_ms = started_ms + 1")
    connection.execute("UPDATE watchers SET state = 'disarmed'")
    connection.close()


def test_a_command_without_a_runner_can_be_ended_without_a_gateway(
    home: Path, on_host: Gateway, workdir: Path
) -> None:
    """Issue 13, A1: runner, keeper and gateway are killed; `koboshi processes kill` ends it."""
    job = Job(on_host, workdir, more="")
    on_host.kill()
    kill(job.born, "keeper_pid", "pid")
    assert is_there(job.pids[0])

    ended = koboshi("processes", "kill", "p1", home=home)

    assert ended.out.startswith("p1    lost ")
    assert not is_there(job.pids[0])
