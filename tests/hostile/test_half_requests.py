"""Issue 15, V12: requests that are begun and never ended delay no other client."""

import http.client
import resource
import socket
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.cli.process import WITHIN_S, gateway

HALVES = 1_100
AT_ONCE_S = 5.0
"""Far below the 28 s that it took; far above what a starved machine takes."""


@pytest.fixture
def _many_files() -> None:
    """This test holds as many connections as it opens."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2 * HALVES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * HALVES), hard))


@pytest.mark.parametrize(
    "begun",
    [b"GET /api/v1/status HTTP/1.1\r\nHost: x", b"", b"POST /api/v1/login HTTP/1.1\r\nHost:"],
)
@pytest.mark.usefixtures("_many_files")
def test_health_answers_at_once_among_half_requests(home: Path, begun: bytes) -> None:
    with gateway(home) as one, ExitStack() as open_ones:
        place = one.wait_serving()
        for _ in range(HALVES):
            link = open_ones.enter_context(socket.create_connection(place, timeout=WITHIN_S))
            if begun:
                link.sendall(begun)
        started = time.monotonic()
        with closing(http.client.HTTPConnection(*place, timeout=WITHIN_S)) as asked:
            asked.request("GET", "/healthz")
            assert asked.getresponse().status == 200
        assert time.monotonic() - started < AT_ONCE_S
        one.say("terminal", "echo hello")
