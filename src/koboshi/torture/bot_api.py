"""The platform on a socket of this machine: as much HTTP as a bot needs."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httptools
from anyio import (
    BrokenResourceError,
    ClosedResourceError,
    EndOfStream,
    create_task_group,
    create_tcp_listener,
)
from anyio.abc import SocketAttribute, SocketStream

from koboshi.torture.platform import Broken, Platform, parameters_in

GONE = (EndOfStream, BrokenResourceError, ClosedResourceError, OSError)


@dataclass(slots=True, kw_only=True)
class _Call:
    """A request, as far as it has come."""

    path: str = ""
    kind: str = ""
    body: bytearray = field(default_factory=bytearray)
    is_whole: bool = False

    def on_url(self, url: bytes) -> None:
        self.path = url.decode("ascii")

    def on_header(self, name: bytes, content: bytes) -> None:
        if name.lower() == b"content-type":
            self.kind = content.decode("latin-1")

    def on_body(self, chunk: bytes) -> None:
        self.body += chunk

    def on_message_complete(self) -> None:
        self.is_whole = True

    @property
    def method(self) -> str:
        return self.path.rpartition("/")[2]


@asynccontextmanager
async def serving(platform: Platform) -> AsyncIterator[str]:
    """Serve it to this machine for the length of the block. Gives its address."""
    listener = await create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)

    async def talk(stream: SocketStream) -> None:
        async with stream:
            try:
                while await _answer(platform, stream):
                    pass
            except (*GONE, httptools.HttpParserError):
                # The gateway was killed in the middle of a word.
                return

    async with listener, create_task_group() as tasks:
        tasks.start_soon(listener.serve, talk)
        yield f"http://127.0.0.1:{port}"
        tasks.cancel_scope.cancel()


async def _answer(platform: Platform, stream: SocketStream) -> bool:
    """Answer one call. False where the connection is to end."""
    call = _Call()
    parser = httptools.HttpRequestParser(call)
    while not call.is_whole:
        parser.feed_data(await stream.receive())
    answer: tuple[int, dict[str, object]] | None = None
    given = parameters_in(bytes(call.body), call.kind)
    async with create_task_group() as tasks:

        async def watch() -> None:
            # A caller that has gone waits for no updates.
            try:
                await stream.receive(1)
            except GONE:
                tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            answer = await platform.call(call.method, given)
        except Broken:
            answer = None
        tasks.cancel_scope.cancel()
    if answer is None:
        return False
    status, said = answer
    body = json.dumps(said).encode()
    head = f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n"
    await stream.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return True
