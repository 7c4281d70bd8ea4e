"""Issue 15, V7: nothing is sent where the other side has not proven to be our gateway."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.process import gateway, koboshi
from tests.harness.impostor import impostor
from tests.harness.polling import WITHIN_S

PORT = "KOBOSHI__CHANNELS__WEB__MAIN__PORT"


@pytest.fixture
def stopped(home: Path) -> Path:
    """A home whose gateway has run, and is down."""
    with gateway(home) as one:
        one.stop()
    return home


def test_with_the_gateway_down_nothing_goes_to_its_port(stopped: Path) -> None:
    token = (stopped / "web-token").read_text().strip()
    with impostor() as other:
        told = koboshi(
            "chat", "--once", "hello", "--wait", "1", home=stopped, **{PORT: str(other.port)}
        )

    assert told.code == 1
    assert "no gateway answered" in told.err
    assert token.encode() not in other.heard
    assert b"hello" not in other.heard


@pytest.mark.parametrize("body", [b'{"identity": "me"}', b"{}", b"<html>", b""])
def test_an_impostor_at_a_named_address_gets_no_token(stopped: Path, body: bytes) -> None:
    token = (stopped / "web-token").read_text().strip()
    with impostor(body=body) as other:
        url = f"http://127.0.0.1:{other.port}"
        told = koboshi("chat", "--once", "hello", "--wait", "1", "--url", url, home=stopped)

    assert told.code == 78
    assert "has not proven to be the gateway of this home" in told.err
    assert b"Authorization" not in other.heard
    assert token.encode() not in other.heard
    assert b"hello" not in other.heard


def test_one_that_passes_the_challenge_on_to_the_gateway_is_found_out(home: Path) -> None:
    """The answer is made of the address by which the gateway was called."""
    with gateway(home) as one:
        host, port = one.wait_serving()
        token = (home / "web-token").read_text().strip()
        with _relay(host, port) as (address, heard):
            told = koboshi("chat", "--once", "hi", "--wait", "1", "--url", address, home=home)

    assert told.code == 78
    assert token.encode() not in b"".join(heard)


@contextmanager
def _relay(host: str, port: int) -> Iterator[tuple[str, list[bytes]]]:
    """A program that passes everything on, with the name of the gateway."""
    listener = socket.create_server(("127.0.0.1", 0))
    ours = listener.getsockname()[1]
    heard: list[bytes] = []

    def serve() -> None:
        try:
            link, _ = listener.accept()
        except OSError:
            return
        with link, socket.create_connection((host, port)) as there:
            link.settimeout(10)
            there.settimeout(10)
            try:
                heard.append(link.recv(65_536))
                there.sendall(heard[0].replace(str(ours).encode(), str(port).encode()))
                answer = b""
                while not answer.endswith(b"}"):
                    answer += there.recv(65_536)
                link.sendall(answer)
                heard.append(link.recv(65_536))
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{ours}", heard
    finally:
        listener.close()
        thread.join(WITHIN_S)
