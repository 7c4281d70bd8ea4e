"""What outlives a gateway under systemd: background commands, and a turn that restarts it itself.

Each of these is true of the machine's unit and of a user's own.
"""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import until
from tests.harness.rows import read_rows
from tests.systemd.machine import (
    RUNTIME,
    UID,
    UNIT,
    Machine,
    UnitGateway,
    installed,
    installed_for_user,
    only_by_itself,
)

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(90)]


@pytest.fixture(params=[pytest.param("system"), pytest.param("user", marks=only_by_itself)])
def one(machine: Machine, request: pytest.FixtureRequest) -> Iterator[UnitGateway]:
    unit = installed(machine) if request.param == "system" else installed_for_user(machine)
    try:
        unit.start()
        yield unit
    finally:
        unit.bury()


class Background:
    """A command in the background that waits for a sign, and then ends with code 3."""

    def __init__(self, one: UnitGateway) -> None:
        self.one = one
        self.folder = one.machine.shared_folder()
        wait = f"while [ ! -e {self.folder}/go-on ]; do sleep 0.05; done; echo survived; exit 3"
        message = one.say("a", f"in background echo $$ >> {self.folder}/began; {wait}")
        one.wait_state(message, "done")
        until(self._there("began").exists, "it runs", otherwise=one.why)

    def _there(self, name: str) -> Path:
        return self.one.machine.inside(self.folder / name)

    @property
    def is_alive(self) -> bool:
        """Looked for by its words: inside its boundary, it counts its pids from one."""
        words = f"{self.folder}/go-on".encode()
        return any(words in said for said in self.one.machine.command_lines())

    def go_on(self) -> None:
        self._there("go-on").touch()

    def go_on_to_its_end(self) -> None:
        self.go_on()
        record = self.one.home / "processes/1/exit.json"
        until(record.exists, "its runner has told its end")

    def is_told_once(self) -> None:
        """Its true end, in one report and one answer to that."""

        def answered() -> Any:
            reports = self.one.ask(ask="explain", what="p1")["reports"]
            return [each for each in reports if each["turn_id"] is not None]

        (report,) = until(answered, "its end is told", otherwise=self.one.why)
        assert "exited with code 3" in report["text"]
        assert self.one.ask(ask="process-log", what="p1")["output"] == "survived"
        told = self.one.wait_state(f"m{report['entry_id']}", "done")
        assert [each["state"] for each in told["deliveries"]] == ["delivered"]
        assert len(self._there("began").read_text().split()) == 1, "it was started once"


def test_a_background_command_ends_while_the_unit_is_stopped(one: UnitGateway) -> None:
    background = Background(one)

    assert one.systemctl("stop", UNIT).code == 0
    assert background.is_alive
    background.go_on_to_its_end()
    one.start()

    background.is_told_once()


@only_by_itself
@pytest.mark.parametrize("way", ["stop and start", "restart", "kill"])
def test_a_background_command_outlives_the_gateway(one: UnitGateway, way: str) -> None:
    background = Background(one)
    before = one.pid

    match way:
        case "restart":
            assert one.systemctl("restart", UNIT).code == 0
        case "kill":
            one.signal(signal.SIGKILL)
        case _:
            assert one.systemctl("stop", UNIT).code == 0
            one.start()

    one.wait_serving(times=2)
    assert one.pid not in (0, before)
    assert background.is_alive
    background.go_on()
    background.is_told_once()


def test_an_agent_restarts_its_own_gateway_and_knows_it_afterwards(one: UnitGateway) -> None:
    """S172: what comes up is left alone by what went down, and it happens once."""
    before = one.pid
    call = {"tool": "gateway_restart", "arguments": {"reason": "a new configuration"}}
    script = [{"calls": [call]}, {"text": "I am back"}]

    message = one.say("a", f"script: {json.dumps(script)}")

    one.wait_serving(times=2)
    one.wait_state(message, "done")
    assert one.pid not in (0, before)
    assert (one.restarts, one.shown("ActiveState")) == (1, "active")
    assert one.systemctl("stop", UNIT).code == 0
    rows = read_rows(one.home)
    (result,) = rows.of("steps", kind="result")
    told = json.loads(json.loads(result["body"])["text"])
    assert (told["status"], told["boot"]) == ("restarted", 2)
    assert [row["ended_how"] for row in rows.workers] == ["restart", "stopped"]
    assert [row["state"] for row in rows.of("outbox", text="I am back")] == ["delivered"]


@only_by_itself
@pytest.mark.parametrize("one", ["user"], indirect=True)
def test_the_end_of_a_session_takes_commands_along_and_that_is_told(one: UnitGateway) -> None:
    """S171: nothing of a user outlives their systemd. It does not look like a normal end."""
    background = Background(one)
    manager = f"user@{UID}.service"

    assert one.machine.systemctl("stop", manager).code == 0
    assert not background.is_alive
    assert one.machine.systemctl("start", manager).code == 0

    (report,) = until(lambda: _reports_of(one), "its end is told")
    assert "lost (it was killed together with its runner" in report["text"]


def _reports_of(one: UnitGateway) -> Any:
    told = one.ask(ask="explain", what="p1")
    return told and told["reports"]


@only_by_itself
@pytest.mark.parametrize("is_brutal", [False, True], ids=["systemctl restart", "kill -9"])
def test_a_command_that_restarts_its_own_gateway_does_so_once(
    machine: Machine, is_brutal: bool
) -> None:
    """S172: the command outlives what it ended, and what comes up takes it up again and waits for
    its true end; it is not run a second time, which would end the successor."""
    free = "KOBOSHI__TOOLS__SANDBOX=host KOBOSHI__TOOLS__TERMINAL__APPROVAL=never"
    one = installed_for_user(machine, f"Environment={free}\n")
    try:
        folder, before = machine.shared_folder(), one.pid
        restart = f"XDG_RUNTIME_DIR={RUNTIME} systemctl --user restart {UNIT}"
        command = f"echo ran >> {folder}/ran; {f'kill -9 {before}' if is_brutal else restart}"

        message = one.say("a", f"run {command}; echo code $?")

        one.wait_serving(times=2)
        told = one.wait_state(message, "done")
        assert one.pid not in (0, before)
        assert machine.inside(folder / "ran").read_text() == "ran\n"
        assert [each["text"] for each in told["deliveries"] if "code 0" in each["text"]]
        assert len(one.events("boot_report")) == 2
    finally:
        one.bury()
