"""`koboshi run --supervise`: the small parent that starts the gateway again."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from koboshi.cli.supervise import (
    LIFELINE,
    code_of,
    command_again,
    how_it_ended,
    is_over,
    pause_after,
)
from tests.cli.process import (
    WITHIN_S,
    child_of,
    children,
    environment,
    gateway,
    is_there,
    koboshi,
    python,
    starting,
    until,
)

SIGKILL_DEATH = "the gateway was killed by SIGKILL"
WAITS = "until [ -e go ]; do sleep 0.05; done"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_a_killed_gateway_is_started_again_at_once(home: Path) -> None:
    """S171: what killed it is told apart from an end of its own."""
    with gateway(home, "--supervise") as parent:
        killed = child_of(parent)
        os.kill(killed, signal.SIGKILL)

        until(lambda: set(children(parent.pid)) - {killed}, "another is started")
        parent.wait_serving(times=2)
        status = koboshi("status", "--json", home=home).document
        assert status["previous"]["pid"] == killed
        assert status["previous"]["ended_how"] == "killed"
        assert f"{SIGKILL_DEATH}; it gets up again in 0.2 s" in parent.err


def test_a_turn_goes_on_in_the_next_life(home: Path) -> None:
    """S3, S37: the one turn that was under way is taken up again, by itself."""
    workdir = home.with_name("workdir")
    settings = {"KOBOSHI__GATEWAY__WORKDIR": str(workdir)}
    with gateway(home, "--supervise", **settings) as parent:
        message = parent.say("a", f"run {WAITS}")
        parent.wait_state(message, "running")
        os.kill(child_of(parent), signal.SIGKILL)
        parent.wait_serving(times=2)
        (workdir / "go").touch()

        told = parent.wait_state(message, "done")

        assert told["turn"]["recoveries"] == 1
        assert len(told["deliveries"]) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_stops_both(home: Path, number: signal.Signals) -> None:
    with gateway(home, "--supervise") as parent:
        child = child_of(parent)
        parent.signal(number)

        assert parent.wait_end() == 0
        assert not is_there(child)
        assert koboshi("status", "--json", home=home).document["worker"]["ended_how"] == "stopped"


def test_asked_to_stop_while_the_gateway_starts_it_stops_both(home: Path) -> None:
    with starting(home, "--supervise") as parent:
        (child,) = until(lambda: children(parent.pid), "the gateway is started")
        parent.signal(signal.SIGTERM)

        assert parent.wait_end() == 0
        assert not is_there(child)


def test_when_the_parent_is_killed_the_gateway_stops_by_itself(home: Path) -> None:
    with gateway(home, "--supervise") as parent:
        child = child_of(parent)
        parent.kill()

        until(lambda: not is_there(child), "the gateway has stopped")
        status = koboshi("status", "--json", home=home).document
        assert status["is_running"] is False
        assert status["worker"]["ended_how"] == "stopped"


def test_the_gateway_stops_without_its_parent_after_a_restart_that_was_asked_for(
    home: Path,
) -> None:
    """The next life is the parent's to start: one that the gateway began by itself would not hear
    of the parent's death."""
    with gateway(home, "--supervise") as parent:
        koboshi("restart", home=home)
        parent.wait_serving(times=2)
        child = child_of(parent)
        parent.kill()

        until(lambda: not is_there(child), "the gateway has stopped")


def test_what_a_restart_does_not_mend_is_not_restarted(home: Path) -> None:
    """The gateway finds the port in use, in its log and in its last words; its parent has nothing
    to add."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        told = koboshi("run", "--supervise", home=home, KOBOSHI__CHANNELS__WEB__MAIN__PORT=port)

    assert told.code == 78
    assert told.err.count(f"koboshi: 127.0.0.1 port {port} is in use by another program") == 1
    assert "gets up again" not in told.err


def test_a_wrong_configuration_is_said_once(home: Path) -> None:
    told = koboshi("run", "--supervise", home=home, KOBOSHI__GATEWAY__BUSI="1")

    assert told.code == 78
    assert told.err.count("busy") == 1


IMPATIENT = """
from koboshi.cli import supervise
from koboshi.cli.main import main

supervise.PAUSE_SECONDS = (0.01, 0.02, 0.03, 600.0)
main()
"""


def test_a_crash_loop_is_slowed_down_and_can_be_stopped(home: Path) -> None:
    """The last pause is longer than any test: a stop does not wait for its end."""
    dying = {"KOBOSHI_CRASH_AT": "workers.start:before"}
    with starting(home, "--supervise", command=python(IMPATIENT), **dying) as parent:
        loop = re.compile(rf"{SIGKILL_DEATH}; it gets up again in ([0-9.]+) s")
        until(lambda: len(loop.findall(parent.err)) == 4, "it has died four times")
        parent.signal(signal.SIGTERM)

        assert parent.wait_end() == 0
        assert [float(pause) for pause in loop.findall(parent.err)] == [0.01, 0.02, 0.03, 600]


def test_a_wish_to_see_the_stacks_is_passed_on(home: Path) -> None:
    with gateway(home, "--supervise") as parent:
        child = child_of(parent)
        parent.signal(signal.SIGQUIT)

        until(lambda: "most recent call first" in parent.err, "the gateway shows its stacks")
        assert child_of(parent) == child


STUBBORN = """
import sys
from koboshi.cli.supervise import supervise_gateway

gateway = '''
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
sys.stdin.read()
'''
sys.orig_argv = [sys.executable, "-c", gateway]
sys.exit(supervise_gateway(0.3))
"""


def test_a_gateway_that_does_not_stop_is_killed() -> None:
    """S34: a bound outside the gateway ends it, and its parent with 0."""
    with subprocess.Popen(
        python(STUBBORN), env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        (child,) = children(parent.pid)
        parent.terminate()

        assert parent.wait(WITHIN_S) == 0
        assert not is_there(child)


def test_tools_do_not_inherit_what_ties_the_gateway_to_its_parent(home: Path) -> None:
    """A program that the gateway leaves behind must not look like a part of it."""
    with gateway(home, "--supervise") as parent:
        child = child_of(parent)
        variables = Path(f"/proc/{child}/environ").read_bytes()
        (descriptor,) = re.findall(rf"{LIFELINE}=([0-9]+)".encode(), variables)
        state = Path(f"/proc/{child}/fdinfo/{int(descriptor)}").read_text()

    mode = int(state.split()[3], 8)
    assert mode & os.O_CLOEXEC


def test_the_pause_grows_with_every_death_and_has_a_limit() -> None:
    assert [pause_after(deaths) for deaths in range(1, 9)] == [0.2, 0.5, 1, 2, 5, 15, 15, 15]


def test_only_an_end_that_was_wanted_or_cannot_be_mended_is_final() -> None:
    assert is_over(0, is_asked=False)
    assert is_over(78, is_asked=False)
    assert is_over(-9, is_asked=True)
    assert not any(is_over(code, is_asked=False) for code in (1, 74, 75, -9, -11))


def test_a_parent_that_was_asked_to_stop_ends_with_0_unless_its_gateway_says_why_not() -> None:
    assert [code_of(code) for code in (0, 1, 74, 78, -9, -15)] == [0, 0, 74, 78, 0, 0]


def test_an_end_is_told_in_words() -> None:
    assert how_it_ended(74) == "ended with code 74"
    assert how_it_ended(-9) == "was killed by SIGKILL"
    assert how_it_ended(-40) == "was killed by signal 40"


def test_the_gateway_is_run_just_as_its_parent_was() -> None:
    original = ["python", "-X", "dev", "/bin/koboshi", "run", "--supervise", "--home", "x"]

    again = command_again(original)

    assert again == [sys.executable, "-X", "dev", "/bin/koboshi", "run", "--home", "x"]
