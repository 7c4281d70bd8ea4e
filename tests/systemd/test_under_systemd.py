"""A gateway under a real systemd, from the unit that `koboshi service show` prints."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koboshi.cli.service.files import signed
from tests.cli.process import KOBOSHI, Ended, until
from tests.systemd.machine import HOME, UID, UNIT, Machine, UnitGateway, only_by_itself

Install = Callable[..., UnitGateway]

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(90)]


def test_start_returns_when_the_first_message_can_be_accepted(
    machine: Machine, install: Install
) -> None:
    one = install()
    one.start()

    message = one.say("a", "hello")

    assert one.wait_state(message, "done")
    told = machine.shown("ActiveState", "SubState", "User", "StatusText")
    assert [told[name] for name in ("ActiveState", "SubState")] == ["active", "running"]
    assert told["User"] == "koboshi"
    assert "ready for messages" in told["StatusText"] or "running" in told["StatusText"]
    assert one.home.stat().st_uid == UID


@only_by_itself
def test_it_stops_in_time_and_counts_as_stopped(machine: Machine, install: Install) -> None:
    one = install()
    one.start()
    message = one.say("a", "count to 3 slowly")
    one.wait_state(message, "running")

    assert machine.systemctl("stop", UNIT).code == 0

    assert machine.shown("ActiveState", "Result", "ExecMainStatus") == {
        "ActiveState": "inactive",
        "Result": "success",
        "ExecMainStatus": "0",
    }
    one.start()
    assert one.wait_state(message, "done")


def test_a_command_runs_on_over_a_restart_and_is_answered_once(
    machine: Machine, install: Install
) -> None:
    one = install()
    one.start()
    folder = machine.shared_folder()
    began, go_on = folder / "began", folder / "go-on"
    wait = f"echo $$ >> {began}; while [ ! -e {go_on} ]; do sleep 0.05; done; echo survived"
    message = one.say("a", f"run {wait}")
    until(lambda: machine.inside(began).exists(), "the command runs", otherwise=one.why)
    before = one.pid

    assert machine.systemctl("restart", UNIT).code == 0

    assert one.pid not in (0, before)
    one.wait_serving(times=2)
    machine.inside(go_on).touch()
    told = one.wait_state(message, "done")
    assert len(machine.inside(began).read_text().split()) == 1, "it was started once"
    answers = [each for each in told["deliveries"] if "survived" in each["text"]]
    assert [each["state"] for each in answers] == ["delivered"]


SLOW = """
import time
from koboshi.cli.main import main
from koboshi.runtime.notify import Notifier

stopping = Notifier.stopping

def slowly(self):
    stopping(self)
    for _ in range(40):
        {each_time}
        time.sleep(0.1)

Notifier.stopping = slowly
main()
"""


def slow_to_stop(machine: Machine, each_time: str) -> str:
    """A drop-in for a gateway whose stop takes four seconds; the unit gives it two."""
    program = Path("/run/slow.py")
    machine.inside(program).write_text(SLOW.format(each_time=each_time))
    command = f"{sys.executable} {program} run --home {HOME}"
    return f"ExecStart=\nExecStart={command}\nTimeoutStopSec=2\n"


@only_by_itself
def test_a_stop_longer_than_the_limit_is_killed_and_recovered(
    machine: Machine, install: Install
) -> None:
    """Seed 003: SIGKILL in the middle of the stop, when nothing was written yet."""
    one = install(slow_to_stop(machine, "pass"))
    one.start()
    message = one.say("a", "count to 3 slowly")
    one.wait_state(message, "running")

    machine.systemctl("stop", UNIT)

    assert machine.shown("ActiveState", "Result") == {"ActiveState": "failed", "Result": "timeout"}
    one.start()
    told = one.wait_state(message, "done")
    assert told["turn"]["recoveries"] == 1


@only_by_itself
def test_a_stop_that_asks_for_more_time_outlives_a_short_limit(
    machine: Machine, install: Install
) -> None:
    """An old unit file may say less than a drain needs."""
    one = install(slow_to_stop(machine, "self.extend(20)"))
    one.start()
    message = one.say("a", "count to 3 slowly")
    one.wait_state(message, "running")

    assert machine.systemctl("stop", UNIT).code == 0

    assert machine.shown("ActiveState", "Result") == {
        "ActiveState": "inactive",
        "Result": "success",
    }
    assert one.events("gateway_stopped")


def test_the_watchdog_ends_a_frozen_gateway_and_it_comes_back(
    machine: Machine, install: Install
) -> None:
    one = install("WatchdogSec=2\n")
    one.start()
    message = one.say("a", "count to 3 slowly")
    one.wait_state(message, "running")

    one.signal(signal.SIGSTOP)

    until(lambda: one.restarts == 1, "it was restarted", otherwise=one.why)
    one.wait_serving(times=2)
    assert one.wait_state(message, "done")
    assert "Fatal Python error: Aborted" in one.err, "it shows where it hung"


@only_by_itself
def test_a_healthy_gateway_is_left_alone_by_the_watchdog(install: Install) -> None:
    one = install("WatchdogSec=1\n")
    one.start()

    one.wait_state(one.say("a", "count to 3 slowly"), "done")

    assert one.restarts == 0


@only_by_itself
def test_a_killed_gateway_is_started_again(install: Install) -> None:
    one = install()
    one.start()
    message = one.say("a", "count to 3 slowly")
    one.wait_state(message, "running")

    one.signal(signal.SIGKILL)

    one.wait_serving(times=2)
    assert one.wait_state(message, "done")
    assert one.restarts == 1


def test_the_doctor_reads_the_unit_that_is_loaded(machine: Machine, install: Install) -> None:
    install().start()
    good = machine.run(KOBOSHI, "doctor", "--json", "--home", str(HOME))
    install("KillMode=mixed\nTimeoutStopSec=30\n")
    bad = machine.run(KOBOSHI, "doctor", "--json", "--home", str(HOME))

    def said(told: Ended) -> list[str]:
        return [each["words"] for each in told.document["findings"] if each["check"] == "service"]

    assert said(good) == ["the system's unit is as recommended"]
    assert [words.split(" in ")[0] for words in said(bad)] == [
        "KillMode=mixed",
        "TimeoutStopSec=30s",
    ]


@only_by_itself
def test_the_doctor_writes_an_old_unit_again_and_systemd_reads_it(
    machine: Machine, install: Install
) -> None:
    one = install()
    file = machine.inside(Path("/etc/systemd/system") / UNIT)
    right = file.read_text()
    old = right.split("\n", 1)[1].replace("OOMPolicy=continue", "OOMPolicy=stop")
    file.write_text(signed(old, "0.0.9"))
    assert machine.systemctl("daemon-reload").code == 0
    one.start()
    before = one.pid

    told = machine.run(KOBOSHI, "doctor", "--fix", "--json", "--home", str(HOME))

    assert [each["error"] for each in told.document["mended"]] == [None], told.out
    assert file.read_text() == right
    assert one.shown("OOMPolicy") == "continue"
    assert one.pid == before, "it was not restarted for it"


@only_by_itself
def test_a_command_that_systemd_stopped_did_not_end_by_itself(install: Install) -> None:
    """S171: with a unit that stops every process, and a command that then says goodbye with 0."""
    one = install("KillMode=control-group\n")
    one.start()
    wait = "trap 'exit 0' TERM; echo listening; while :; do sleep 0.05; done"
    one.wait_state(one.say("a", f"in background {wait}"), "done")
    until(lambda: "listening" in printed(one), "it listens for signals", otherwise=one.why)

    assert one.systemctl("restart", UNIT).code == 0

    (report,) = until(lambda: reports(one), "its end is told", otherwise=one.why)
    assert "killed (it was told to stop, and not by the gateway" in report["text"]


def printed(one: UnitGateway) -> str:
    """What the first process has written so far."""
    told = one.ask(ask="process-log", what="p1")
    return str(told)


def reports(one: UnitGateway) -> Any:
    """What was told of the first process."""
    told = one.ask(ask="explain", what="p1")
    return told and told["reports"]


TOOLS_NEED = {
    "files of the user": "touch ~/one",
    "temporary files": "mktemp /tmp/koboshi-test.XXXXXX | xargs rm",
    "a sandbox": "unshare --user --map-root-user --mount true",
    "processes of its own": "test -e /proc/$PPID/stat",
    "code made at run time": "python3 -c 'import ctypes; ctypes.CFUNCTYPE(None)(print)'",
}


@only_by_itself
def test_hardening_takes_nothing_from_commands_that_they_need(
    machine: Machine, install: Install
) -> None:
    one = install()
    one.start()
    works = {
        what: command
        for what, command in TOOLS_NEED.items()
        if machine.run_as_user("sh", "-c", command).code == 0
    }

    tried = "; ".join(f"({command}) && echo yes {what}" for what, command in works.items())
    told = one.wait_state(one.say("a", f"run {tried}"), "done")

    said = "".join(each["text"] for each in told["deliveries"])
    assert [what for what in works if f"yes {what}" not in said] == []
    assert "files of the user" in works


def test_a_wrong_configuration_is_not_tried_again(machine: Machine, install: Install) -> None:
    one = install()
    one.home.mkdir(parents=True)
    (one.home / "koboshi.toml").write_text("[gateway]\nbusi = 1\n")
    machine.run("chown", "--recursive", str(UID), str(HOME.parent))

    assert machine.systemctl("start", UNIT).code != 0

    assert machine.shown("ActiveState", "ExecMainStatus", "NRestarts") == {
        "ActiveState": "failed",
        "ExecMainStatus": "78",
        "NRestarts": "0",
    }
    assert "busi" in one.err


def test_awkward_paths_reach_the_gateway_as_they_are(machine: Machine, install: Install) -> None:
    home = HOME.parent / 'a b%h $HOME "quoted" back\\slash ü'
    one = install("", "--home", str(home))
    one.start()

    assert machine.inside(home / "koboshi.db").exists()
