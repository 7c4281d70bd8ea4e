"""A long command runs for a model behind a real interface, and the gateway ends in the middle."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import is_there
from tests.crash.telling import checked
from tests.harness.insiders import living_of
from tests.harness.lives import KILLED_BY_HAND, STOPPED
from tests.harness.modelled import Modelled, gate, modelled, run, waits, words_in
from tests.harness.polling import until
from tests.models.forms import FORMS, OPENAI, Form

NOTES = {
    KILLED_BY_HAND: "The gateway stopped without warning while you were working on this",
    STOPPED: "The gateway was restarted while you were working on this",
}


async def start_command(it: Modelled, *more_answers: Any) -> None:
    """The model asks for the command; it has written its first line and waits at the gate."""
    it.server.answers += [it.proposes(run(waits())), *more_answers]
    await it.person.say("do it", "1")
    await it.until_lines("begun")


@pytest.mark.parametrize("ends_while_down", [False, True], ids=["ends-later", "ends-while-down"])
@pytest.mark.parametrize("how", [KILLED_BY_HAND, STOPPED])
async def test_a_command_under_way_runs_once_and_the_model_gets_its_real_outcome(
    home: Path, how: str, ends_while_down: bool
) -> None:
    """S63, S68, S69, S134, S159: killed or asked to stop in the middle of a command that waits; it
    is not started again, and its output and exit code reach the model, whether it ends before the
    gateway is back or afterwards. One answer."""
    async with modelled(home, OPENAI) as it, gate(it) as door:
        await start_command(it, it.says("it ended with 7"))
        await it.end(how)
        if ends_while_down:
            door.open()
            await until(it.process_file("exit.json").exists, "the command has ended")
        it.gateway.start()
        if not ends_while_down:
            await it.until_running(2)
            door.open()
        await it.person.hears("it ended with 7")
        rows = await checked(it.life)

    assert it.lines() == ["begun", "on"]
    assert len(it.server.requests) == 2
    assert it.results() == [
        {"status": "exited", "process_id": "p1", "exit_code": 7, "output": "the word is on\n"}
    ]
    assert words_in(it.server.last).count(NOTES[how]) == 1
    assert it.person.answered() == ["it ended with 7"]
    assert rows.one("calls")["outcome"] == "ok"


async def test_a_command_that_outlives_two_gateways_runs_once(home: Path) -> None:
    """S136, S159: killed, and asked to stop while it waits for the command that it took up."""
    async with modelled(home, OPENAI) as it, gate(it) as door:
        await start_command(it, it.says("it ended with 7"))
        await it.restart()
        await it.until_running(2)
        await it.end(STOPPED)
        door.open()
        await until(it.process_file("exit.json").exists, "the command has ended")
        it.gateway.start()
        await it.person.hears("it ended with 7")
        await checked(it.life)

    assert it.lines() == ["begun", "on"]
    assert [result["exit_code"] for result in it.results()] == [7]


async def test_a_supervised_gateway_takes_its_command_up_by_itself(home: Path) -> None:
    """S159, S172: `koboshi run --supervise` starts the killed gateway again; no other helps."""
    async with modelled(home, OPENAI, "--supervise") as it, gate(it) as door:
        await start_command(it, it.says("it ended with 7"))
        killed = it.owner()
        assert killed != it.gateway.pid
        os.kill(killed, signal.SIGKILL)
        await it.until_running(2)
        door.open()
        await it.person.hears("it ended with 7")
        rows = await checked(it.life)

    assert it.lines() == ["begun", "on"]
    assert [result["exit_code"] for result in it.results()] == [7]
    assert [worker["ended_how"] for worker in rows.workers] == ["killed", None]


async def test_a_command_that_was_taken_up_can_be_stopped(home: Path) -> None:
    """S80, S83, S85: the person has had enough of it in the second life, and another death behind
    their word changes nothing: it ends, it stays ended, and the model is not asked."""
    async with modelled(home, OPENAI) as it, gate(it):
        await start_command(it)
        await it.restart()
        await it.until_running(2)
        await it.person.say("/stop", "2")
        await it.restart()
        await it.person.hears("Stopped: «do it»")
        await until(lambda: is_tree_gone(it), "nothing is left of the command")
        rows = await checked(it.life)

    assert it.lines() == ["begun"]
    assert len(it.server.requests) == 1
    assert len(it.person.heard()[:-1]) == 1
    assert rows.one("turns")["event"] == "cut"


def kill_tree(it: Modelled) -> None:
    """SIGKILL to the runner and to the command, as a service manager does that spares no one."""
    born = json.loads(it.process_file("born.json").read_text(encoding="utf-8"))
    os.kill(born["pid"], signal.SIGKILL)
    for pid in living_of(it.process_file("spec").parent):
        with suppress(ProcessLookupError):  # the keeper of the runner was faster
            os.kill(pid, signal.SIGKILL)


def is_tree_gone(it: Modelled) -> bool:
    born = json.loads(it.process_file("born.json").read_text(encoding="utf-8"))
    return not is_there(born["pid"]) and not living_of(it.process_file("spec").parent)


def forget_boot(it: Modelled) -> None:
    """What the files of a dead runner say when the machine was started again since."""
    file = it.process_file("born.json")
    born = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**born, "boot_id": "of another boot"}), encoding="utf-8")


@pytest.mark.parametrize("is_rebooted", [False, True], ids=["killed", "rebooted"])
async def test_a_command_that_died_with_its_runner_is_lost_and_not_repeated(
    home: Path, is_rebooted: bool
) -> None:
    """S68, S134, S159, S171: gateway, runner and command are killed, or the machine was restarted;
    the model is told that, and its attempt to run the same again is refused."""
    async with modelled(home, OPENAI) as it, gate(it):
        again = it.proposes(run(waits(), "call_2"))
        await start_command(it, again, it.says("it is lost"))
        await it.end(KILLED_BY_HAND)
        kill_tree(it)
        await until(lambda: is_tree_gone(it), "nothing is left of the command")
        if is_rebooted:
            forget_boot(it)
        it.gateway.start()
        await it.person.hears("it is lost")
        rows = await checked(it.life)

    assert it.lines() == ["begun"]
    lost, refused = it.results()
    assert (lost["status"], "exit_code" in lost) == ("lost", False)
    why = "the machine was restarted" if is_rebooted else "it was killed together with its runner"
    assert lost["reason"].startswith(why)
    assert "was not started" in refused
    assert [call["outcome"] for call in rows.calls] == ["unknown", "error"]
    assert it.person.heard()[:-1] == ["it is lost"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
async def test_of_two_calls_side_by_side_only_the_unfinished_one_is_taken_up(
    home: Path, form: Form
) -> None:
    """S68, S69, S159: one call of a reply has its result at the kill and the other has not; both
    commands run once, and the model gets both real outcomes under the calls they belong to."""
    quick = "echo quick >> quick; echo from the quick one"
    async with modelled(home, form) as it, gate(it) as door:
        calls = (run(quick, "call_1"), run(waits(), "call_2"))
        it.server.answers += [it.proposes(*calls), it.says("both are done")]
        await it.person.say("do both", "1")
        await it.until_lines("begun")
        await it.person.sees(lambda event: event.fields.get("kind") == "result", "one result")
        await it.restart()
        await it.until_running(2)
        door.open()
        await it.person.hears("both are done")
        rows = await checked(it.life)

    assert (it.lines("quick"), it.lines()) == (["quick"], ["begun", "on"])
    by_output = {result["output"]: result["exit_code"] for result in it.results()}
    assert by_output == {"from the quick one\n": 0, "the word is on\n": 7}
    finished, taken_up = rows.calls
    assert finished == it.life.remains[0].calls[0], "it was finished before, and left alone"
    assert (finished["died_ms"], taken_up["died_ms"] is not None) == (None, True)
    assert it.person.heard()[:-1] == ["both are done"]
