"""Requests for tests, and a network that is a function."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from koboshi.domain.ids import CallId, EntryId, Epoch, Seq, SessionId, TurnId
from koboshi.domain.transcript import Body, Call, Effect, Message, Reply, Result, ResultStatus, Step
from koboshi.ports.model import Request, ToolSpec
from tests.fakes.model_servers.server import Answer, Received

KEY = "sk-test-0123456789"

PAUSE = ToolSpec(
    name="pause",
    description="Wait.",
    parameters='{"type":"object","properties":{"seconds":{"type":"integer"}},"required":[]}',
)


def asked(*bodies: Body, system: str = "Be brief.", tools: tuple[ToolSpec, ...] = ()) -> Request:
    """A request whose steps have these bodies."""
    steps = tuple(
        Step(seq=Seq(seq), turn_id=TurnId(1), epoch=Epoch(1), at_ms=0, body=body)
        for seq, body in enumerate(bodies, start=1)
    )
    return Request(
        session_id=SessionId(1), turn_id=TurnId(1), system=system, steps=steps, tools=tools
    )


def said(text: str) -> Message:
    return Message(text=text, sender="u1", entry_id=EntryId(1), sent_ms=0)


def call(number: str, tool: str = "pause", arguments: str = "{}", provider_id: str = "") -> Call:
    return Call(
        call_id=CallId(number),
        tool=tool,
        arguments=arguments,
        effect=Effect.NONE,
        provider_id=provider_id or f"id_{number.replace('.', '_')}",
    )


def called(*calls: Call, text: str = "", raw: str = "", model: str = "") -> Reply:
    return Reply(text=text, calls=calls, raw=raw, model=model)


def found(number: str, text: str) -> Result:
    return Result(call_id=CallId(number), status=ResultStatus.OK, text=text)


HELLO = asked(said("hello"))


@dataclass
class Line(httpx2.AsyncBaseTransport):
    """Carries requests to a function, in this process. `breaks` ends every answer with a broken
    connection instead of a clean end."""

    answer: Callable[[Received], Answer]
    breaks: bool = False
    requests: list[Received] = field(default_factory=list)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        received = Received(
            method=request.method,
            path=request.url.raw_path.decode(),
            headers={name.lower(): words for name, words in request.headers.items()},
            body=json.loads(await request.aread()),
        )
        self.requests.append(received)
        answer = self.answer(received)
        return httpx2.Response(
            answer.status,
            headers=list(answer.headers),
            stream=_Pieces(answer.pieces, breaks=self.breaks),
        )

    @property
    def last(self) -> dict[str, Any]:
        return self.requests[-1].body


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: tuple[bytes, ...], *, breaks: bool) -> None:
        self._pieces = pieces
        self._breaks = breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._breaks:
            raise httpx2.RemoteProtocolError("peer closed connection")
