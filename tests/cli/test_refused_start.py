"""A start that could not be: what it says, and what the next one makes of it."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.process import gateway, koboshi, until
from tests.harness.rows import read_rows


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


@contextmanager
def held_port() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield str(listener.getsockname()[1])


def refuse_start(home: Path, *, times: int = 1, **more: str) -> None:
    with held_port() as port:
        for _ in range(times):
            told = koboshi("run", home=home, KOBOSHI__CHANNELS__WEB__MAIN__PORT=port, **more)
            assert told.code == 78, told.err


def test_a_port_in_use_is_told_with_who_has_it_and_what_helps(home: Path) -> None:
    """Issue 13, B13: the error names the port, the process, the option and the key."""
    with held_port() as port:
        told = koboshi("run", home=home, KOBOSHI__CHANNELS__WEB__MAIN__PORT=port)

    assert told.code == 78
    assert f"127.0.0.1 port {port} is in use by another program (pid {os.getpid()}" in told.err
    assert "koboshi run --port" in told.err
    assert "port under [channels.web.main]" in told.err
    assert "Traceback" not in told.err


def test_a_start_that_was_refused_is_not_booked_as_killed(home: Path) -> None:
    """Issue 13, B13: its row says so, and status and the next boot's report do not speak of a
    kill."""
    refuse_start(home)

    (worker,) = read_rows(home).of("workers")
    assert worker["ended_how"] == "refused"
    assert "could not start" in koboshi("status", home=home).out
    with gateway(home) as two:
        until(lambda: two.events("boot_report"), "it has looked around")
        status = koboshi("status", "--json", home=home).document
        assert status["previous"] is None, "no gateway served before"
        assert "killed" not in str(status["worker"]["report"])


def test_refused_starts_do_not_hide_how_the_last_one_ended_that_served(home: Path) -> None:
    """Issue 13, B13: the report is about the boot that people talked to."""
    with gateway(home) as one:
        assert one.stop() == 0
    refuse_start(home, times=2)

    with gateway(home) as three:
        until(lambda: three.events("boot_report"), "it has looked around")
        status = koboshi("status", "--json", home=home).document
    assert status["previous"]["worker_id"] == 1
    assert "Boot 1 was stopped as asked" in status["worker"]["report"]


def test_refused_starts_do_not_move_the_breaker(home: Path) -> None:
    """Issue 13, B13: a turn died once. However often the port is in use afterwards, that is one
    death, and the turn goes on."""
    breaker = {"KOBOSHI__RECOVERY__BOOT_BREAKER": "true"}
    with gateway(home, **breaker) as one:
        message = one.say("ann", "run sleep 600")
        one.wait_state(message, "running")
        one.kill()
    refuse_start(home, times=5, **breaker)

    with gateway(home, **breaker) as one:
        assert one.asked(ask="status")["breaker"] == "closed"
        one.wait_state(message, "running")


@pytest.mark.parametrize("way", [[], ["--supervise"]])
def test_a_port_can_be_given_at_the_start(home: Path, way: list[str]) -> None:
    """Issue 13, B13: `run --port` rules over file and environment."""
    with held_port() as port:
        pass
    (home / "koboshi.toml").write_text("[channels.web.main]\nport = 1\n")

    with gateway(home, *way, "--port", port) as one:
        assert one.wait_serving() == ("127.0.0.1", int(port))


def test_a_port_of_two_web_channels_is_nobodys(home: Path) -> None:
    (home / "koboshi.toml").write_text("[channels.web.main]\n\n[channels.web.more]\nport = 8700\n")

    told = koboshi("run", "--port", "0", home=home)

    assert told.code == 78
    assert "--port" in told.err


@pytest.mark.parametrize("port", ["-1", "65536", "web"])
def test_a_port_that_is_none_is_refused(home: Path, port: str) -> None:
    assert koboshi("run", "--port", port, home=home).code == 2
