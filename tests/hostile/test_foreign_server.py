"""`koboshi chat` at an address where something else answers: it says so, and ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from anyio import create_task_group, fail_after, sleep_forever
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from koboshi.channels.common.listening import ListenAddress, listen
from koboshi.channels.common.serving import EmbeddedServer
from koboshi.channels.web.codec import Post
from koboshi.channels.web.identity import IDENTITY_PATH, Identity, identity_of
from koboshi.cli.chat.link import ChatLink, ChatOver
from tests.hostile.wire import BOUND_S

GARBAGE = [
    b"",
    b"<html>hello</html>",
    b"{}",
    b"[1]",
    b'{"message": 1, "state": {}, "duplicate": "no"}',
    b'{"message": "m1", "state": 7, "duplicate": false}',
    b"\xff\xfe",
    b"[" * 100_000,
]


@asynccontextmanager
async def something_else(said: bytes) -> AsyncIterator[str]:
    """A server that answers every question with 202 or 200, and these bytes."""

    async def events(_request: Request) -> Response:
        async def forever() -> AsyncIterator[bytes]:
            yield b": hello\nid: 1\n\n"
            await sleep_forever()

        return StreamingResponse(forever(), media_type="text/event-stream")

    async def posted(_request: Request) -> Response:
        return Response(said, 202)

    async def found(_request: Request) -> Response:
        return Response(said, 200)

    async def identity(request: Request) -> Response:
        """It has the token; its words make no sense all the same."""
        made = identity_of("token", request.headers["host"], request.query_params["challenge"])
        return Response(msgspec.json.encode(Identity(identity=made)))

    base = "/api/v1/sessions/a"
    app = Starlette(
        routes=[
            Route(IDENTITY_PATH, identity),
            Route(f"{base}/events", events),
            Route(f"{base}/messages", posted, methods=["POST"]),
            Route(f"{base}/messages/m1", found),
        ]
    )
    server = EmbeddedServer(app, connections_max=10, goodbye_s=0)
    listener = await listen(ListenAddress(host="127.0.0.1", port=0))
    async with create_task_group() as tasks:
        tasks.start_soon(server.run_until_told, listener)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True


@pytest.mark.parametrize("said", GARBAGE, ids=lambda said: repr(said[:20]))
async def test_an_answer_that_makes_no_sense_ends_the_chat_with_words(said: bytes) -> None:
    async with something_else(said) as url, create_task_group() as tasks:
        link = ChatLink(
            url=url,
            chat="a",
            thread="",
            start="now",
            read_token=lambda: "token",
            say=lambda _words: None,
        )
        async with link:
            tasks.start_soon(link.follow, lambda *_event: None)
            with fail_after(BOUND_S), pytest.raises(ChatOver, match="no koboshi gateway") as over:
                await link.post("key", Post(text="hello"))
            with fail_after(BOUND_S):
                assert await link.standing("m1") is None
            tasks.cancel_scope.cancel()

    assert over.value.code == 78
