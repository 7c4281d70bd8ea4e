"""The control socket: whatever is asked, and however, the gateway goes on and answers."""

import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio import (
    BrokenResourceError,
    EndOfStream,
    connect_unix,
    create_task_group,
    fail_after,
    sleep_forever,
)
from anyio.abc import SocketStream

from koboshi.control import socket as control
from koboshi.control.socket import ControlSocket
from tests.harness.polling import until_asked

STATUS = b'{"ask": "status", "key": "secret"}\n'


class Asked:
    """Stands for the answers: it hands back what it was asked, or does what the test wants."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.is_stuck = False

    async def __call__(self, request: Mapping[str, object]) -> Mapping[str, object]:
        if self.error is not None:
            raise self.error
        if self.is_stuck:
            await sleep_forever()
        return {"ok": True, "asked": dict(request)}


@pytest.fixture
def asked() -> Asked:
    return Asked()


@asynccontextmanager
async def serving(home: Path, asked: Asked) -> AsyncIterator[Path]:
    """A served socket."""
    path = home / "control.sock"
    (home / "control-key").write_text("secret\n")
    async with create_task_group() as tasks:
        tasks.start_soon(ControlSocket(home=home, answer=asked).keep_serving)
        await until_asked(lambda: is_served(path), "the socket is served")
        yield path
        tasks.cancel_scope.cancel()


async def is_served(path: Path) -> bool:
    try:
        stream = await connect_unix(path)
    except OSError:
        return False
    await stream.aclose()
    return True


async def exchange(path: Path, *pieces: bytes) -> Any:
    async with await connect_unix(path) as stream:
        for piece in pieces:
            await stream.send(piece)
        return await answer_from(stream)


async def answer_from(stream: SocketStream) -> Any:
    received = b""
    with fail_after(60):
        while not received.endswith(b"\n"):
            received += await stream.receive()
    return json.loads(received)


async def test_a_request_is_answered(tmp_path: Path, asked: Asked) -> None:
    async with serving(tmp_path, asked) as path:
        answer = await exchange(path, STATUS)

    assert answer == {"ok": True, "asked": {"ask": "status"}}


async def test_a_request_may_come_in_pieces(tmp_path: Path, asked: Asked) -> None:
    async with serving(tmp_path, asked) as path:
        answer = await exchange(path, STATUS[:6], STATUS[6:-1], STATUS[-1:])

    assert answer["ok"] is True


async def test_only_the_owner_may_ask(tmp_path: Path, asked: Asked) -> None:
    async with serving(tmp_path, asked) as path:
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "request_,complaint",
    [
        (b"hello\n", "the request is not JSON"),
        (b"\xff\xfe\n", "the request is not JSON"),
        (b"[" * 50_000 + b"\n", "the request is not JSON"),
        (b"[1]\n", "the request is not an object"),
        (b"x" * 200_000, "a request has at most 64000 bytes"),
    ],
)
async def test_nonsense_is_refused_in_words(
    tmp_path: Path, asked: Asked, request_: bytes, complaint: str
) -> None:
    async with serving(tmp_path, asked) as path:
        answer = await exchange(path, request_)

    assert answer == {"ok": False, "error": {"type": "bad-request", "message": complaint}}


async def test_a_bug_in_an_answer_ends_only_that_answer(tmp_path: Path, asked: Asked) -> None:
    async with serving(tmp_path, asked) as path:
        asked.error = ZeroDivisionError("a bug")
        broken = await exchange(path, STATUS)
        asked.error = None
        whole = await exchange(path, STATUS)

    assert broken["error"]["type"] == "bug"
    assert whole["ok"] is True


async def test_a_stuck_database_is_said_to_be_one(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "ANSWER_SECONDS", 0.05)
    asked.is_stuck = True
    async with serving(tmp_path, asked) as path:
        answer = await exchange(path, STATUS)

    assert answer["error"]["type"] == "too-slow"


async def test_a_client_that_leaves_in_the_middle_is_let_go(tmp_path: Path, asked: Asked) -> None:
    async with serving(tmp_path, asked) as path:
        async with await connect_unix(path) as stream:
            await stream.send(b'{"ask"')
        async with await connect_unix(path):
            pass

        assert (await exchange(path, STATUS))["ok"] is True


async def test_one_who_says_nothing_is_let_go(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "READ_SECONDS", 0.05)
    async with serving(tmp_path, asked) as path, await connect_unix(path) as silent:
        with fail_after(60), pytest.raises((EndOfStream, BrokenResourceError)):
            await silent.receive()

        assert (await exchange(path, STATUS))["ok"] is True


async def test_the_socket_of_a_dead_gateway_is_replaced(tmp_path: Path, asked: Asked) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "control.sock"))

    async with serving(tmp_path, asked) as path:
        assert (await exchange(path, STATUS))["ok"] is True

    assert not path.exists(), "it is taken away at the end"


async def test_where_there_can_be_no_socket_the_gateway_goes_on(
    tmp_path: Path, asked: Asked
) -> None:
    (tmp_path / "control.sock").mkdir()

    with fail_after(60):
        await ControlSocket(home=tmp_path, answer=asked).keep_serving()

    assert (tmp_path / "control.sock").is_dir()


async def test_stopping_does_not_wait_for_an_answer(tmp_path: Path, asked: Asked) -> None:
    """S144: a waiting caller is let go."""
    asked.is_stuck = True
    with fail_after(60):
        async with serving(tmp_path, asked) as path:
            stream = await connect_unix(path)
            await stream.send(STATUS)
        await stream.aclose()


@pytest.mark.parametrize("shown", ["", ', "key": ""', ', "key": "wrong"', ', "key": ["secret"]'])
async def test_a_request_without_the_key_is_told_nothing(
    tmp_path: Path, asked: Asked, shown: str
) -> None:
    """Issue 15, V4: a program inside a boundary may connect; it cannot read the home."""
    async with serving(tmp_path, asked) as path:
        answer = await exchange(path, f'{{"ask": "status"{shown}}}\n'.encode())

    assert answer["error"]["type"] == "no-key"
    assert f"{tmp_path}/control-key" in answer["error"]["message"]


async def test_a_key_that_was_lost_is_written_again(tmp_path: Path, asked: Asked) -> None:
    key = tmp_path / "control-key"
    async with serving(tmp_path, asked) as path:
        key.unlink()
        answer = await exchange(path, b'{"ask": "status"}\n')

        assert (await exchange(path, STATUS))["ok"] is True

    assert "is written again" in answer["error"]["message"]
    assert (key.read_text(), key.stat().st_mode & 0o777) == ("secret\n", 0o600)
