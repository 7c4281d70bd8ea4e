"""`koboshi status`: asked of the gateway, or read by the command as the owner for a moment."""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from koboshi import __version__
from koboshi.cli import ask_owner
from koboshi.cli.options import CommandFailure
from tests.cli.process import (
    KOBOSHI,
    WITHIN_S,
    as_other_user,
    environment,
    gateway,
    is_stopped,
    koboshi,
    passable_folder,
    python,
    until,
)

KEYS = [
    "ok",
    "is_running",
    "trouble",
    "worker",
    "previous",
    "turns",
    "stands",
    "inbox_waiting",
    "outbox_unsettled",
    "sessions",
    "sqlite",
    "breaker",
    "outbox_held",
    "gap",
    "turns_unheard",
    "unreached",
    "heard",
    "neighbours",
    "restart",
    "server",
    "nodes",
    "agents",
    "home",
]
WORKER_KEYS = [
    "worker_id",
    "host",
    "pid",
    "birth",
    "version",
    "started_ms",
    "heartbeat_ms",
    "is_draining",
    "ended_ms",
    "ended_how",
    "restart_by",
    "found_dead",
    "report",
    "node",
    "home",
]
TURN_KEYS = ["queued", "running", "waiting", "suspended", "answered"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


# ── a gateway runs ──────────────────────────────────────────────────────────────────────────────


def test_status_of_a_running_gateway(home: Path) -> None:
    with gateway(home) as one:
        message = one.say("a", "ask me which drink: tea or coffee")
        one.wait_state(message, "waiting")

        told = koboshi("status", home=home)

        assert told.code == 0
        lines = told.out.splitlines()
        assert lines[0].startswith(f"koboshi {__version__} is running as pid {one.pid}, since ")
        assert lines[1] == f"home       {home}"
        assert lines[2] == "before     nothing: this is the first boot"
        assert lines[3] == "turns      1 waiting for an answer"
        assert lines[4] == "waiting    0 messages"
        assert lines[5] == "to send    0 deliveries"


def test_status_for_programs_has_stable_keys(home: Path) -> None:
    with gateway(home) as one:
        running = koboshi("status", "--json", home=home).document
        one.stop()
    stopped = koboshi("status", "--json", home=home).document

    for document in (running, stopped):
        assert list(document) == KEYS
        assert list(document["worker"]) == WORKER_KEYS
        assert list(document["turns"]) == TURN_KEYS
    assert (running["is_running"], stopped["is_running"]) == (True, False)
    assert running["worker"]["pid"] == stopped["worker"]["pid"] == one.pid


def test_status_in_a_home_with_a_very_long_name(tmp_path: Path) -> None:
    """The kernel takes only short names for sockets."""
    home = tmp_path / ("long" * 20) / ("longer" * 20)
    assert len(os.fsencode(home)) > 200
    with gateway(home) as one:
        assert koboshi("status", "--json", home=home).document["is_running"] is True
        one.kill()
    assert koboshi("status", "--json", home=home).document["is_running"] is False


def test_a_gateway_that_hangs_is_told_from_one_that_does_not_run(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateway(home) as one:
        monkeypatch.setattr(ask_owner, "ANSWER_SECONDS", 0.3)
        one.signal(signal.SIGSTOP)
        until(lambda: is_stopped(one.pid), "every thread of it stands still")

        with pytest.raises(CommandFailure, match="does not answer; it may be stuck") as failure:
            ask_owner.ask_gateway(home, {"ask": "status"})

        assert (failure.value.code, failure.value.kind) == (1, "no-answer")


# ── no gateway runs ─────────────────────────────────────────────────────────────────────────────


def test_status_where_no_gateway_has_ever_run(home: Path) -> None:
    told = koboshi("status", home=home)

    assert told.code == 1
    assert told.err == f"koboshi: no gateway has run in {home} yet; `koboshi run` makes it a home\n"
    assert not home.exists()


def test_a_failure_for_programs_is_one_document_as_well(home: Path) -> None:
    told = koboshi("status", "--json", home=home)

    assert told.code == 1
    assert list(told.document) == ["ok", "error"]
    assert told.document["ok"] is False
    assert told.document["error"]["type"] == "no-home"
    assert told.err == ""


def test_a_wrong_configuration_for_programs_is_one_document_as_well(home: Path) -> None:
    told = koboshi("status", "--json", home=home, KOBOSHI__GATEWAY__BUSI="1")

    assert told.code == 78
    assert told.document["error"]["type"] == "config"


def test_status_after_a_stop_says_so(home: Path) -> None:
    with gateway(home) as one:
        one.stop()

    told = koboshi("status", home=home)

    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0] == "koboshi is not running"
    assert lines[2].startswith("last       boot 1 was stopped as asked at ")


def test_status_after_a_kill_says_so_although_the_socket_is_still_there(home: Path) -> None:
    with gateway(home) as one:
        one.kill()
    assert (home / "control.sock").exists()

    told = koboshi("status", home=home)

    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0] == "koboshi is not running"
    assert lines[2].startswith("last       boot 1 was killed; its last sign of life was at ")


def test_the_boot_after_a_kill_knows_how_the_one_before_ended(home: Path) -> None:
    with gateway(home) as first:
        first.kill()
    with gateway(home):
        told = koboshi("status", home=home)

    assert "\nbefore     boot 1 was killed; " in told.out


def test_looking_changes_nothing(home: Path) -> None:
    """S168: asking why is no act of recovery."""
    with gateway(home) as one:
        message = one.say("a", "count to 30 slowly")
        one.wait_state(message, "running")
        one.kill()

    first = koboshi("explain", message, "--json", home=home).document
    koboshi("status", home=home)
    second = koboshi("explain", message, "--json", home=home).document

    assert first["turn"] == second["turn"]
    assert first["lines"] == second["lines"]
    assert first["turn"]["state"] == "running"


def test_many_commands_at_once_take_turns(home: Path) -> None:
    """S167: each of them owns the home for a moment; none is turned away."""
    with gateway(home) as one:
        one.stop()
    processes = [
        subprocess.Popen(
            [KOBOSHI, "status", "--json"],
            env=environment(home),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(5)
    ]

    ended = [(process.communicate(timeout=WITHIN_S), process.returncode) for process in processes]

    assert [code for _, code in ended] == [0] * 5, [err for (_, err), _ in ended]


def test_a_gateway_that_starts_meanwhile_waits_for_the_command(home: Path) -> None:
    with gateway(home) as one:
        one.stop()
    with subprocess.Popen(
        [KOBOSHI, "status"], env=environment(home), stdout=subprocess.DEVNULL
    ) as command:
        with gateway(home) as again:
            assert again.stop() == 0
        assert command.wait(WITHIN_S) == 0


def test_a_home_that_is_held_by_something_silent_is_named(home: Path) -> None:
    """The lock is held, and the socket is not served."""
    with gateway(home) as one:
        one.stop()
    hold = (
        "import fcntl, os, sys\n"
        "descriptor = os.open(sys.argv[1], os.O_RDWR)\n"
        "fcntl.flock(descriptor, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    ask = (
        "from koboshi.cli import ask_owner\n"
        "ask_owner.OWN_SECONDS = 0.3\n"
        "from koboshi.cli.main import main\n"
        "main(['status'])\n"
    )
    with subprocess.Popen(
        [*python(hold), str(home / "koboshi.lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        told = subprocess.run(
            python(ask), env=environment(home), capture_output=True, text=True, check=False
        )
        holder.kill()

    assert told.returncode == 1
    assert f"{home} is held by a koboshi gateway (pid {one.pid} on " in told.stderr
    assert "which does not answer" in told.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a home of another user")
def test_the_home_of_another_user_is_closed() -> None:
    with passable_folder() as folder:
        home = folder / "home"
        with gateway(home):
            told = as_other_user("status", home=home, KOBOSHI_CONFIG="/dev/null")

    assert told.code == 78
    assert "permission denied" in told.err
    assert "Traceback" not in told.err


# ── what comes back over the socket ─────────────────────────────────────────────────────────────


@contextmanager
def answering(home: Path, reply: bytes) -> Iterator[None]:
    """Something that is not a gateway, on the socket of one."""
    home.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        with ask_owner.short_path(home / "control.sock") as path:
            listener.bind(path)
        listener.listen()

        def serve() -> None:
            link, _ = listener.accept()
            with link:
                link.recv(65_536)
                link.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


def test_a_gateway_that_dies_over_its_answer_is_one_that_does_not_run(home: Path) -> None:
    with answering(home, b'{"ok": tr'):
        assert ask_owner.ask_gateway(home, {"ask": "status"}) is None


@pytest.mark.parametrize("reply", [b"hello\n", b"[1]\n", b"\xff\n"])
def test_an_answer_that_is_none_is_refused(home: Path, reply: bytes) -> None:
    with answering(home, reply), pytest.raises(CommandFailure, match="cannot be read"):
        ask_owner.ask_gateway(home, {"ask": "status"})
