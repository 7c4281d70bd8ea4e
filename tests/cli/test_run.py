"""`koboshi run`: how it starts, how it ends, and with which code."""

import os
import pty
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.cli.process import (
    KOBOSHI,
    NOBODY,
    WITHIN_S,
    as_other_user,
    can_other_user_look,
    environment,
    gateway,
    koboshi,
    passable_folder,
    python,
    starting,
    until,
)
from tests.harness.open_files import has_open
from tests.harness.tally import WANTS_ALL


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@contextmanager
def held_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_it_starts_without_what_it_does_not_use(home: Path) -> None:
    """What is loaded before the first message can be accepted is waited for after every kill."""
    command = (sys.executable, "-X", "importtime", KOBOSHI)
    with starting(home, command=command) as one:
        one.wait_serving()
        loaded = {line.rpartition("|")[2].strip() for line in one.err.splitlines()}

    assert {"structlog", "apsw", "uvicorn"} <= loaded
    unused = {"rich.console", "pygments", "attr", "httpx2", "markdown_it", "mcp", "pydantic"}
    assert not loaded & unused


# ── stopping ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_as_asked(home: Path, number: signal.Signals) -> None:
    with gateway(home) as one:
        one.signal(number)

        assert one.wait_end() == 0
        assert one.events("gateway_stopped")
        assert "Traceback" not in one.err


def test_it_stops_as_asked_in_the_middle_of_a_turn(home: Path) -> None:
    with gateway(home) as one:
        message = one.say("a", "count to 30 slowly")
        one.wait_state(message, "running")

        assert one.stop() == 0

    told = koboshi("explain", message, "--json", home=home).document
    assert told["turn"]["state"] == "queued"
    assert told["turn"]["event"] == "released"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_at_once_while_it_waits_for_the_home(home: Path, number: signal.Signals) -> None:
    with gateway(home), starting(home, "--lock-wait", "600") as second:
        # The lock is opened by no other, so the one who has it open is waiting for it.
        lock = os.stat(home / "koboshi.lock")
        until(lambda: has_open(second.pid, lock), "the second waits for the lock")

        second.signal(number)

        assert second.wait_end() == 0
        assert "Traceback" not in second.err


def test_it_shows_where_it_is_when_asked_and_goes_on(home: Path) -> None:
    """Repeated, because a look at threads that run meanwhile would crash now and then."""
    with gateway(home) as one:
        for _ in range(20_000 if WANTS_ALL else 20):
            one.signal(signal.SIGQUIT)

        until(lambda: "most recent call first" in one.err, "the stacks of all threads")
        assert koboshi("status", "--json", home=home).document["worker"]["pid"] == one.pid


def test_a_foreign_lock_on_the_database_does_not_keep_it_from_stopping(home: Path) -> None:
    """S166: a store that cannot be written is a reason to end with 74, not to hang."""
    with gateway(home) as one:
        with closing(sqlite3.connect(home / "koboshi.db", isolation_level=None)) as foreign:
            foreign.execute("BEGIN IMMEDIATE")

            one.signal(signal.SIGTERM)

            assert one.wait_end() == 74
        assert "start me again" in one.err
        assert "Traceback" not in one.err


# ── one home, two gateways ──────────────────────────────────────────────────────────────────────


def test_a_second_gateway_says_who_holds_the_home_and_leaves_it_alone(home: Path) -> None:
    """S167: exactly one serves; the other says why."""
    with gateway(home) as first:
        message = first.say("a", "hello")
        first.wait_state(message, "done")

        second = koboshi("run", "--lock-wait", "0.2", home=home)

        assert second.code == 78
        assert f"held by a koboshi gateway (pid {first.pid} on " in second.err
        assert "Traceback" not in second.err
        assert first.wait_state(first.say("a", "hello again"), "done")
        status = koboshi("status", "--json", home=home).document
        assert status["worker"]["worker_id"] == 1, "the second has left no trace"
        assert first.stop() == 0


@pytest.mark.parametrize("variable", ["INVOCATION_ID", "NOTIFY_SOCKET"])
def test_under_a_service_manager_a_held_home_is_worth_another_try(
    home: Path, variable: str
) -> None:
    """S167: the service manager starts it again, until the other gateway has left."""
    with gateway(home):
        second = koboshi("run", "--lock-wait", "0", home=home, **{variable: "x"})

    assert second.code == 75
    assert "held by a koboshi gateway" in second.err


def test_a_terminal_that_inherited_a_variable_is_no_service_manager(home: Path) -> None:
    with gateway(home):
        controller, terminal = pty.openpty()
        second = subprocess.run(
            [KOBOSHI, "run", "--lock-wait", "0"],
            env=environment(home, INVOCATION_ID="x"),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            check=False,
            timeout=WITHIN_S,
        )
        shown = os.read(controller, 65_536)
        os.close(controller)
        os.close(terminal)

    assert second.returncode == 78
    assert b"held by a koboshi gateway" in shown


def test_a_second_gateway_takes_over_when_the_first_has_left(home: Path) -> None:
    """S172: the successor waits, and is not harmed by the one it follows."""
    with gateway(home) as first, starting(home, "--lock-wait", "30") as second:
        lock = os.stat(home / "koboshi.lock")
        until(lambda: has_open(second.pid, lock), "the second waits for the lock")
        assert first.stop() == 0

        second.wait_serving()

        status = koboshi("status", "--json", home=home).document
        assert status["worker"]["pid"] == second.pid
        assert status["previous"]["ended_how"] == "stopped"


def test_a_second_gateway_takes_over_when_the_first_was_killed(home: Path) -> None:
    """S167: the kernel gives the home back, however its owner died."""
    with gateway(home) as first, starting(home, "--lock-wait", "30") as second:
        lock = os.stat(home / "koboshi.lock")
        until(lambda: has_open(second.pid, lock), "the second waits for the lock")
        first.kill()

        second.wait_serving()

        status = koboshi("status", "--json", home=home).document
        assert status["previous"]["ended_how"] == "killed"


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "soon"])
def test_the_wait_for_the_home_has_a_limit(home: Path, seconds: str) -> None:
    told = koboshi("run", "--lock-wait", seconds, home=home)

    assert told.code == 2
    assert "--lock-wait" in told.err


# ── what is wrong with the place ────────────────────────────────────────────────────────────────


def test_a_port_in_use_is_said_in_one_line(home: Path) -> None:
    with held_port() as port:
        told = koboshi("run", home=home, KOBOSHI__CHANNELS__WEB__MAIN__PORT=str(port))

    assert told.code == 78
    assert f"127.0.0.1 port {port} is in use by another program" in told.err
    assert "Traceback" not in told.err


def test_after_a_port_in_use_the_home_is_free_again(home: Path) -> None:
    with held_port() as port:
        koboshi("run", home=home, KOBOSHI__CHANNELS__WEB__MAIN__PORT=str(port))

    with gateway(home, "--lock-wait", "0"):
        pass


@pytest.mark.parametrize("command", ["run", "status"])
def test_a_home_that_is_a_file(tmp_path: Path, command: str) -> None:
    file, config = tmp_path / "home", tmp_path / "koboshi.toml"
    file.write_text("mine")
    config.touch()

    told = koboshi(command, home=file, KOBOSHI_CONFIG=str(config))

    assert told.code == 78
    assert f"the home {file} is a file, not a folder" in told.err
    assert file.read_text() == "mine"
    assert koboshi(command, home=file).code == 78, "whether a configuration is named or not"


def test_a_home_that_cannot_be_written() -> None:
    with passable_folder() as folder:
        home = folder / "home"
        home.mkdir(mode=0o500)
        own(home)

        told = as_other_user("run", home=home)

        assert told.code == 78
        assert "is not writable" in told.err
        assert "Traceback" not in told.err
        home.chmod(0o700)


def test_a_home_that_cannot_be_made() -> None:
    with passable_folder() as folder:
        folder.chmod(0o555)

        told = as_other_user("run", home=folder / "deep" / "home")

        assert told.code == 78
        assert "cannot be used: permission denied" in told.err
        folder.chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave files of root behind")
@pytest.mark.skipif(not can_other_user_look(), reason="no other can read the program here")
@pytest.mark.parametrize("name", ["koboshi.lock", "web-token", "koboshi.db"])
def test_a_file_of_another_user_in_the_home_is_named(name: str) -> None:
    """A person ran it once with sudo. No restart mends that."""
    with passable_folder() as folder:
        home = folder / "home"
        home.mkdir(mode=0o700)
        own(home)
        (home / name).touch(mode=0o600)

        told = as_other_user("run", home=home)

        assert told.code == 78
        assert f"{home / name} cannot be" in told.err
        assert "Traceback" not in told.err


def test_a_database_of_another_program_is_left_alone(home: Path) -> None:
    home.mkdir(mode=0o700)
    with closing(sqlite3.connect(home / "koboshi.db")) as foreign:
        foreign.execute("CREATE TABLE mine (a)")
    before = (home / "koboshi.db").read_bytes()

    told = koboshi("run", home=home)

    assert told.code == 78
    assert "a database of another program" in told.err
    assert (home / "koboshi.db").read_bytes() == before


def test_a_socket_that_cannot_be_made_is_only_missed_by_the_command_line(home: Path) -> None:
    (home / "control.sock").mkdir(parents=True)
    home.chmod(0o700)
    with gateway(home) as one:
        one.say("a", "hello")

        until(lambda: one.events("turn_answered"), "it serves all the same")
        assert one.events("control_unavailable")
        assert one.stop() == 0


# ── what no one foresaw ─────────────────────────────────────────────────────────────────────────

BROKEN = """
from koboshi.cli.main import main
from koboshi.domain.errors import StoreFailed
from koboshi.runtime.rescue import Rescue

async def broken(self):
    raise {error}

Rescue.keep_rescuing = broken
main()
"""


def test_a_bug_ends_it_with_1_and_a_traceback_in_the_log(home: Path) -> None:
    command = python(BROKEN.format(error="ZeroDivisionError('a bug')"))
    with starting(home, command=command) as one:
        assert one.wait_end() == 1

        (event,) = one.events("gateway_broke")
        assert "ZeroDivisionError: a bug" in event["exception"]
        assert event["level"] == "critical"


STUCK = """
import threading
from koboshi.cli import run
from koboshi.cli.main import main
from koboshi.runtime.gateway import Gateway

async def hang(gateway):
    gateway.on_stopping()
    threading.Event().wait()

run.OWN_MARGIN_SECONDS = 0.2
Gateway._let_steps_finish = hang
main()
"""


def test_a_drain_that_hangs_ends_from_outside_and_the_turn_goes_on(home: Path) -> None:
    """S34: the event loop itself stands still in the middle of a stop. A thread ends the process
    and shows where it hung; nothing was written, and nothing is lost."""
    workdir = home.with_name("workdir")
    settings = {
        "KOBOSHI__GATEWAY__DRAIN_SECONDS": "0",
        "KOBOSHI__GATEWAY__WORKDIR": str(workdir),
    }
    with starting(home, command=python(STUCK), **settings) as one:
        message = one.say("a", "run until [ -e go ]; do sleep 0.05; done")
        one.wait_state(message, "running")
        one.signal(signal.SIGTERM)
        assert one.wait_end() == 74
        assert "in hang" in one.err
    (workdir / "go").touch()
    with gateway(home, **settings) as one:
        assert one.wait_state(message, "done")["turn"]["recoveries"] == 1


def test_a_failed_store_ends_it_with_74(home: Path) -> None:
    """S166: the next process reads what is there."""
    command = python(BROKEN.format(error="StoreFailed('the disk is gone')"))
    with starting(home, command=command) as one:
        assert one.wait_end() == 74

        assert "koboshi: the disk is gone; start me again" in one.err
        assert "Traceback" not in one.err


def test_a_bug_at_the_start_is_no_silence_either(home: Path) -> None:
    with starting(home, KOBOSHI_CRASH_AT="nonsense") as one:
        assert one.wait_end() == 1

        assert "KOBOSHI_CRASH_AT wants" in one.events("gateway_broke")[0]["exception"]


def test_it_serves_though_no_one_listens_to_what_it_prints(home: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        [KOBOSHI, "run"], env=environment(home), stdout=writer, stderr=subprocess.DEVNULL
    )
    os.close(writer)
    try:
        until((home / "control.sock").exists, "it serves")
        assert koboshi("status", "--json", home=home).document["is_running"] is True
        process.terminate()

        assert process.wait(WITHIN_S) == 0
    finally:
        process.kill()
        process.wait(WITHIN_S)


def own(path: Path) -> None:
    """Give it to the user without rights, if we are able to."""
    if os.geteuid() == 0:
        shutil.chown(path, NOBODY, NOBODY)
