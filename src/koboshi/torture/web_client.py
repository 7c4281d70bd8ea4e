"""One person's side of the HTTP interface: post with a key, follow a chat, ask how it stands.

It is made of a parser and a socket. Every request has a connection of its own: nothing outlives the
gateway that it talked to, and whatever a kill does to it is one of LOST.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

import httptools
import msgspec
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream, connect_tcp, fail_after
from anyio.abc import SocketStream

from koboshi.torture.rest import OpenDelivery, OpenEntry, StillOpen, TurnLeftOpen
from koboshi.torture.seen import SeenEvent

WITHIN_S = 20.0
LOST = (OSError, EndOfStream, BrokenResourceError, ClosedResourceError)
"""What a client meets whose gateway is killed."""


class NotNow(Exception):
    """The gateway cannot answer now: ask again."""


class Unknown(Exception):
    """The gateway does not know a message that it has acknowledged."""


class TalkRefused(Exception):
    """The gateway gives an unexpected answer; a test of promises cannot go on."""


class _Option(msgspec.Struct):
    id: str
    label: str


class _Line(msgspec.Struct):
    turn: str | None = None
    state: str | None = None
    delivery: str | None = None
    cause: str | None = None
    part: int = 0
    parts: int = 0
    text: str | None = None
    question: int | None = None
    choices: tuple[_Option, ...] = ()


class _Accepted(msgspec.Struct):
    message: str


class _Standing(msgspec.Struct):
    turn: str | None = None


class _Status(msgspec.Struct):
    turns: dict[str, int]
    inbox_waiting: int
    outbox_unsettled: int
    unreached: dict[str, str] = msgspec.field(default_factory=dict)


class _Turns(msgspec.Struct):
    turns: tuple[TurnLeftOpen, ...]


class _Inbox(msgspec.Struct):
    messages: tuple[OpenEntry, ...]


class _Outbox(msgspec.Struct):
    deliveries: tuple[OpenDelivery, ...]


_lines = msgspec.json.Decoder(_Line)
_OPEN = "open=1&limit=200"


@dataclass(slots=True, kw_only=True)
class _Answer:
    """What a parser has found so far."""

    status: int = 0
    body: bytearray = field(default_factory=bytearray)
    is_whole: bool = False
    parser: httptools.HttpResponseParser = field(init=False)

    def __post_init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)

    def on_headers_complete(self) -> None:
        self.status = self.parser.get_status_code()

    def on_body(self, chunk: bytes) -> None:
        self.body += chunk

    def on_message_complete(self) -> None:
        self.is_whole = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The way to one life of a gateway. Each call raises one of LOST when it dies."""

    host: str
    port: int
    token: str

    async def post(
        self, chat: str, key: str, text: str, question: int = 0, choice: str = ""
    ) -> str:
        """Have a message stored. Returns its id. Raises NotNow."""
        body: dict[str, object] = {"text": text}
        if choice:
            body |= {"question": question, "choice": choice}
        content = await self._ask(
            f"POST {_path(chat)}/messages", 202, msgspec.json.encode(body), key
        )
        return msgspec.json.decode(content, type=_Accepted).message

    async def turn_of(self, chat: str, message: str) -> str | None:
        """The turn that a message is in. Raises NotNow or Unknown."""
        content = await self._ask(f"GET {_path(chat)}/messages/{message}", 200)
        return msgspec.json.decode(content, type=_Standing).turn

    async def is_quiet(self) -> bool:
        """Whether nothing is worked on, nothing waits and nothing is owed. Raises NotNow."""
        content = await self._ask("GET /api/v1/status", 200)
        status = msgspec.json.decode(content, type=_Status)
        return not any((*status.turns.values(), status.inbox_waiting, status.outbox_unsettled))

    async def still_open(self) -> StillOpen:
        """What is worked on, waits or is owed, the newest of each. Raises NotNow."""
        turns = await self._ask(f"GET /api/v1/turns?{_OPEN}", 200)
        inbox = await self._ask(f"GET /api/v1/inbox?{_OPEN}", 200)
        outbox = await self._ask(f"GET /api/v1/outbox?{_OPEN}", 200)
        status = msgspec.json.decode(await self._ask("GET /api/v1/status", 200), type=_Status)
        return StillOpen(
            turns=msgspec.json.decode(turns, type=_Turns).turns,
            entries=msgspec.json.decode(inbox, type=_Inbox).messages,
            deliveries=msgspec.json.decode(outbox, type=_Outbox).deliveries,
            unreached=tuple(f"{name}: {why}" for name, why in status.unreached.items()),
        )

    async def events(self, chat: str, after: int | None) -> AsyncGenerator[SeenEvent, None]:
        """The events of a chat behind a place, or from its start, until the connection ends.
        Raises NotNow."""
        place = "" if after is None else f"Last-Event-ID: {after}\r\n"
        asked = f"GET {_path(chat)}/events?from=start"
        async with self._request(asked, place) as stream:
            answer = _Answer()
            while True:
                answer.parser.feed_data(await stream.receive())
                if answer.status and answer.status != 200:
                    raise _complaint(asked, answer)
                *frames, rest = answer.body.split(b"\n\n")
                answer.body = bytearray(rest)
                for frame in frames:
                    told = _told(bytes(frame))
                    if told is not None:
                        yield told

    async def _ask(self, asked: str, wanted: int, body: bytes = b"", key: str = "") -> bytes:
        more = f"Content-Length: {len(body)}\r\n"
        if key:
            more += f"Content-Type: application/json\r\nIdempotency-Key: {key}\r\n"
        with fail_after(WITHIN_S):
            async with self._request(asked, more, body) as stream:
                answer = _Answer()
                while not answer.is_whole:
                    answer.parser.feed_data(await stream.receive())
        if answer.status != wanted:
            raise _complaint(asked, answer)
        return bytes(answer.body)

    @asynccontextmanager
    async def _request(
        self, asked: str, more: str, body: bytes = b""
    ) -> AsyncIterator[SocketStream]:
        head = (
            f"{asked} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nConnection: close\r\n"
            f"Authorization: Bearer {self.token}\r\n{more}\r\n"
        )
        with fail_after(WITHIN_S):
            stream = await connect_tcp(self.host, self.port)
        async with aclosing(stream):
            await stream.send(head.encode("ascii") + body)
            yield stream


def connection_to(address: str, token: str) -> Connection:
    """The way to a gateway that says where it is."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    return Connection(host=host, port=int(port), token=token)


def _path(chat: str) -> str:
    return f"/api/v1/sessions/{quote(chat)}"


def _told(frame: bytes) -> SeenEvent | None:
    """The event in a frame; None where it only keeps the connection open, or is not stored."""
    fields = dict(
        line.split(": ", 1) for line in frame.decode().split("\n") if not line.startswith(":")
    )
    if "id" not in fields or "data" not in fields or fields.get("event") == "place":
        return None
    line = _lines.decode(fields["data"])
    return SeenEvent(
        place=int(fields["id"]),
        kind=fields["event"],
        turn=line.turn or "",
        state=line.state or "",
        delivery=line.delivery or "",
        cause=line.cause or "",
        part=line.part,
        parts=line.parts,
        text=line.text or "",
        question=line.question or 0,
        choices=tuple((option.id, option.label) for option in line.choices),
    )


def _complaint(asked: str, answer: _Answer) -> NotNow | Unknown | TalkRefused:
    """What an answer means that is not the hoped-for one. The port of a gateway that has died may
    belong to another one now, which does not know our token."""
    if answer.status == 404:
        return Unknown(asked)
    if answer.status in (401, 408, 429) or answer.status >= 500:
        return NotNow()
    said = bytes(answer.body[:200]).decode(errors="replace")
    return TalkRefused(f"{asked} is answered with {answer.status}: {said}")
