"""A provider on the loopback: it answers from a script, in pieces, and breaks off where told to.

It speaks plain HTTP/1.1 by itself, so that every byte is in the hands of the test.
"""

import asyncio
import json
import socket
import struct
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from anyio import Event

RESET = struct.pack("ii", 1, 0)


class Framing(Enum):
    """How the client knows where a body ends."""

    CHUNKED = "chunked"  # a cut can be noticed
    CLOSE = "close"  # the end of the connection is the end: a cut looks like the end


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the server says to one request."""

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/event-stream"),)
    framing: Framing = Framing.CHUNKED
    pause_s: float = 0  # before each piece
    cut_at: int | None = None  # the connection ends behind so many bytes of the body
    resets: bool = False  # it ends without a goodbye
    hangs_after: Event | None = None  # set behind the last piece; the end of the body never comes


@dataclass(frozen=True, kw_only=True)
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


Complaint = Callable[[Received], Answer | None]


@dataclass
class ModelServer:
    """Answers a request by what is in it, if `answer_to` has something to say to it, and else from
    `answers`, one after the other. A request that breaks the contract of the interface gets what
    `complain` says, as from the real one, and is kept in `complaints`."""

    complain: Complaint
    answers: list[Answer] = field(default_factory=list)
    answer_to: Callable[[Received], Answer | None] = lambda _: None
    requests: list[Received] = field(default_factory=list)
    complaints: list[Answer] = field(default_factory=list)
    port: int = 0
    gate: asyncio.Event | None = None
    """Answers wait for it."""
    has_asked: asyncio.Event = field(default_factory=asyncio.Event)
    is_quiet: asyncio.Event = field(default_factory=asyncio.Event)
    """No client is connected."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def last(self) -> dict[str, Any]:
        """The body of the newest request."""
        return self.requests[-1].body

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self.is_quiet.clear()
        try:
            while await self._serve_one(reader, writer):
                pass
        except (IncompleteReadError, OSError, asyncio.CancelledError):
            pass  # the client is gone, or the test is over
        finally:
            writer.close()
            self.tasks.discard(task)
            if not self.tasks:
                self.is_quiet.set()

    async def _serve_one(self, reader: StreamReader, writer: StreamWriter) -> bool:
        received = await _receive(reader)
        self.requests.append(received)
        self.has_asked.set()
        if self.gate is not None:
            await self.gate.wait()
        answer = self.complain(received)
        if answer is not None:
            self.complaints.append(answer)
        else:
            answer = self.answer_to(received) or self._next_answer()
        return await _send(writer, answer)

    def _next_answer(self) -> Answer:
        if self.answers:
            return self.answers.pop(0)
        return as_json({"error": {"message": "the script is over"}}, status=501)


@asynccontextmanager
async def serving(complain: Complaint) -> AsyncIterator[ModelServer]:
    model_server = ModelServer(complain=complain)
    # Not a task group: a fixture is set up and torn down in different tasks.
    server = await asyncio.start_server(model_server.serve, "127.0.0.1", 0)
    model_server.port = server.sockets[0].getsockname()[1]
    try:
        yield model_server
    finally:
        server.close()
        for task in model_server.tasks:
            task.cancel()
        if model_server.tasks:
            await model_server.is_quiet.wait()
        await server.wait_closed()


def as_json(body: object, *, status: int, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """An answer that is one JSON document, as errors are."""
    return Answer(
        status=status,
        headers=(("Content-Type", "application/json"), *headers),
        pieces=(json.dumps(body).encode(),),
    )


async def _receive(reader: StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").removesuffix("\r\n\r\n")
    start, *lines = head.split("\r\n")
    method, path, _ = start.split(" ")
    headers = {name.lower(): words.strip() for name, _, words in (x.partition(":") for x in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    is_form = headers.get("content-type", "").startswith("multipart/")
    said = {} if is_form else json.loads(body or b"{}")
    return Received(method=method, path=path, headers=headers, body=said)


async def _send(writer: StreamWriter, answer: Answer) -> bool:
    """Send the answer; False if the connection ends with it."""
    is_chunked = answer.framing is Framing.CHUNKED
    framing = ("Transfer-Encoding", "chunked") if is_chunked else ("Connection", "close")
    lines = [f"{name}: {words}" for name, words in (framing, *answer.headers)]
    writer.write("\r\n".join([f"HTTP/1.1 {answer.status} Told", *lines, "", ""]).encode("latin-1"))
    room = answer.cut_at
    for piece in answer.pieces:
        if answer.pause_s:
            await asyncio.sleep(answer.pause_s)
        told = piece if room is None else piece[:room]
        if told:
            writer.write(b"%x\r\n%b\r\n" % (len(told), told) if is_chunked else told)
            await writer.drain()
        if room is not None:
            room -= len(told)
            if not room:
                return _hang_up(writer, answer)
    if answer.hangs_after is not None:
        answer.hangs_after.set()
        await asyncio.Event().wait()
    if not is_chunked:
        return _hang_up(writer, answer)
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


def _hang_up(writer: StreamWriter, answer: Answer) -> bool:
    if answer.resets:
        raw: socket.socket = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    return False
