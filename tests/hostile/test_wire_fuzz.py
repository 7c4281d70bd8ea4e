"""Bytes that are nearly HTTP, or not at all: each gets a refusal or none, and the next one a
connection."""

import socket
from collections.abc import Iterator

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import example, given
from hypothesis import strategies as st

from koboshi.channels.common.http_limits import HttpLimits
from koboshi.channels.web.limits import WebLimits
from tests.hostile.wild import fuzzed
from tests.hostile.wire import BOUND_S, KNOWN, impatient_server, status_of

NAMED = b"Host: localhost\r\n"
WHOLE = b"GET /healthz HTTP/1.1\r\n" + NAMED + b"\r\n"
POST = b"POST /api/v1/sessions/a/messages HTTP/1.1\r\n" + KNOWN.encode() + b"Idempotency-Key: k\r\n"
HUGE = b"9" * 40

MALFORMED = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /healthz\r\n\r\n",
    b"GET /healthz HTTP/9.9\r\n" + NAMED + b"\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/1.0\r\n\r\n",
    b"GET  /healthz  HTTP/1.1\r\n" + NAMED + b"\r\n",
    b"GET /\x00 HTTP/1.1\r\n" + NAMED + b"\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\n" + NAMED + b"\r\n",
    b"GET /%zz%00%ff HTTP/1.1\r\n" + NAMED + b"\r\n",
    b"GET http://evil.example/api/v1/status HTTP/1.1\r\n" + NAMED + b"\r\n",
    b"GET //evil.example/ HTTP/1.1\r\n" + NAMED + b"\r\n",
    b"OPTIONS * HTTP/1.1\r\n" + NAMED + b"\r\n",
    b"CONNECT evil.example:443 HTTP/1.1\r\n" + NAMED + b"\r\n",
    b"GET /healthz HTTP/1.1\r\n" + NAMED + NAMED + b"\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n Host: localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
    b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
    b"GET /healthz HTTP/1.1\r\n" + NAMED + b"X: a\r\n b\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n" + NAMED + b": nameless\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + NAMED + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"GET /api/v1/journal/events HTTP/1.1\r\n"
    + NAMED
    + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: a\r\n\r\n\x81\x85",
    POST + b"Content-Length: -1\r\n\r\n",
    POST + b"Content-Length: " + HUGE + b"\r\n\r\n",
    POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}}",
    POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked, identity\r\n\r\n{}",
    POST + b"Transfer-Encoding: gzip\r\n\r\n{}",
    POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 20 + b"\r\n{}",
    POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n",
    POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"Content-Type: text/xml\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000,
]
ANNOUNCED = {0, 100, 200, 202, 400, 401, 403, 404, 405, 413, 421}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server in a thread of its own, for all examples."""
    limits = WebLimits(body_s=1.0, patience=HttpLimits(request_s=1.0))
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(impatient_server(limits)) as address,
    ):
        yield address


def answer_to(url: str, said: bytes) -> bytes:
    """What the server says until it hangs up."""
    host, _, port = url.removeprefix("http://").partition(":")
    answer = bytearray()
    with socket.create_connection((host, int(port)), timeout=BOUND_S) as stream:
        try:
            stream.sendall(said)
            stream.shutdown(socket.SHUT_WR)
            while received := stream.recv(65_536):
                answer += received
        except ConnectionError:
            return bytes(answer)
    return bytes(answer)


def test_what_is_no_request_is_refused_and_harms_no_other(url: str) -> None:
    for said in MALFORMED:
        answer = answer_to(url, said)
        assert status_of(answer) in ANNOUNCED, (said[:80], answer[:200])
        assert b"Traceback" not in answer
        assert b"HTTP/1.1 5" not in answer, (said[:80], answer[:200])
        assert status_of(answer_to(url, WHOLE)) == 200


PIECES = st.sampled_from(
    [
        *(b"GET ", b"POST ", b"/", b"/healthz", b"/api/v1/login", b" HTTP/1.1", b"\r\n", b"\n"),
        *(b"\r\n\r\n", NAMED, KNOWN.encode(), b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
        *(b"Content-Length: 5\r\n", b"Connection: keep-alive\r\n", b"5\r\nabcde\r\n", WHOLE),
        *(
            b"{}",
            b": ",
            b"\x00",
            b"\xff",
            b"%",
            b"?a=b",
            b"#",
            b"Upgrade: h2c\r\n",
            b"Origin: \r\n",
        ),
    ]
)


@fuzzed(60)
@example([WHOLE, b"\x00", WHOLE])
@given(pieces=st.lists(PIECES | st.binary(max_size=8), max_size=12))
def test_any_bytes_are_answered_with_what_is_announced(url: str, pieces: list[bytes]) -> None:
    answer = answer_to(url, b"".join(pieces))

    assert status_of(answer) in ANNOUNCED, answer[:200]
    assert b"HTTP/1.1 5" not in answer
    assert status_of(answer_to(url, WHOLE)) == 200
