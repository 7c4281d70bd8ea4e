"""The way into the page: printed by `koboshi run`, and by `koboshi open` whenever it is asked."""

import http.client
import json
import os
import pty
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.process import (
    KOBOSHI,
    WITHIN_S,
    Gateway,
    environment,
    gateway,
    koboshi,
    until,
)

LINKED = re.compile(r"http://(127\.0\.0\.1:\d+)/login#([\w-]{20,})")
LINK = re.compile(r"http://127\.0\.0\.1:\d+/login#([\w-]{20,})")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def enter(one: Gateway, code: str) -> int:
    host, port = one.wait_serving()
    return entered(host, port, code)


def entered(host: str, port: int, code: str) -> int:
    connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request("POST", "/api/v1/login", json.dumps({"code": code}))
        return connection.getresponse().status
    finally:
        connection.close()


@contextmanager
def at_a_terminal(home: Path, *arguments: str) -> Iterator[Callable[[], str]]:
    """`koboshi run` with a terminal for its output; what it has printed so far."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    seen: list[bytes] = []

    def printed() -> str:
        with suppress(OSError):
            seen.append(os.read(ours, 65_536))
        return b"".join(seen).decode()

    command = [KOBOSHI, "run", *arguments]
    process = subprocess.Popen(
        command, env=environment(home), stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
    )
    try:
        yield printed
    finally:
        process.terminate()
        process.wait(WITHIN_S)
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("arguments", [[], ["--supervise"]])
def test_the_link_that_run_prints_at_a_terminal_lets_one_browser_in(
    home: Path, arguments: list[str]
) -> None:
    with at_a_terminal(home, *arguments) as printed:
        until(lambda: LINK.search(printed()), "it prints a link", otherwise=printed)
        ((address, code),) = LINKED.findall(printed())
        host, _, port = address.partition(":")

        assert [entered(host, int(port), code) for _ in range(2)] == [200, 403]


def test_nothing_but_a_terminal_gets_a_link(home: Path) -> None:
    """Issue 15, V9: what goes to a file or a pipe ends up in logs, which others read."""
    with gateway(home) as one:
        one.wait_serving()

        assert "login#" not in one.out + one.err
        assert "koboshi open" in one.out


def test_open_gives_a_new_link_each_time(home: Path) -> None:
    with gateway(home) as one:
        one.wait_serving()
        first = koboshi("open", home=home)
        second = koboshi("open", "--json", home=home)
        codes = [*LINK.findall(first.out), *LINK.findall(second.document["link"])]

        assert len(set(codes)) == 2
        assert [enter(one, code) for code in codes] == [200, 200]


def test_a_service_manager_does_not_get_a_link_to_write_down(home: Path) -> None:
    with gateway(home, INVOCATION_ID="x") as one:
        one.wait_serving()

        assert "login#" not in one.out


def test_without_a_gateway_open_says_so(home: Path) -> None:
    with gateway(home) as one:
        one.wait_serving()
        one.stop()

    told = koboshi("open", home=home)

    assert told.code == 1
    assert "no gateway serves pages in this home" in told.err
