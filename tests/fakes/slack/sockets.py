"""Socket Mode: the connections of an app, and the envelopes that go over them."""

import itertools
import json
from contextlib import suppress
from typing import Any

from anyio import move_on_after
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from tests.fakes.slack.happenings import Happening, Happenings
from tests.fakes.slack.world import APP

JSON = dict[str, Any]

CONNECTIONS_MAX = 10


class Sockets:
    def __init__(self, happenings: Happenings) -> None:
        self._happenings = happenings
        self._numbers = itertools.count(1)
        self._tickets: set[str] = set()
        self._under_way: dict[ServerConnection, list[str]] = {}
        self._turns = itertools.count()
        self._server: Server | None = None
        self.opened = 0
        """How many connections there were."""
        self.port = 0
        self.app_id = APP
        """Which app it is that the app-level token is of."""
        self.is_mute = False
        """Connections stay open and nothing goes over them."""
        self.ping_s: float | None = 20.0

    async def start(self) -> None:
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            self.port,
            process_request=self._admit,
            ping_interval=self.ping_s,
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self.cut_all()
        self._server.close(close_connections=True)
        with move_on_after(5):
            await self._server.wait_closed()

    @property
    def connections(self) -> list[ServerConnection]:
        return list(self._under_way)

    def ticket(self) -> str:
        """An address that one connection can be made with, once."""
        ticket = f"ticket-{next(self._numbers)}"
        self._tickets.add(ticket)
        return f"ws://127.0.0.1:{self.port}/link/?ticket={ticket}&app_id={self.app_id}"

    async def warn(self) -> None:
        """All connections there are will end soon."""
        await self._tell_all({"type": "disconnect", "reason": "warning", "debug_info": {}})

    async def refresh(self) -> None:
        """All connections there are end now: they had their time."""
        before = self.connections
        await self._tell_all({"type": "disconnect", "reason": "refresh_requested"})
        for each in before:
            await each.close()

    async def disable(self) -> None:
        """Socket Mode was switched off for the app."""
        await self._tell_all({"type": "disconnect", "reason": "link_disabled"})

    def cut_all(self) -> None:
        """Every connection breaks off without a word."""
        for each in self.connections:
            each.transport.abort()

    async def transmit(self, happening: Happening, envelope_id: str) -> bool:
        """Send an envelope over one of the connections, each in its turn."""
        there = self.connections
        if not there:
            return False
        link = there[next(self._turns) % len(there)]
        self._under_way[link].append(envelope_id)
        envelope: JSON = {
            "envelope_id": envelope_id,
            "payload": happening.payload,
            "type": happening.kind,
            "accepts_response_payload": happening.kind != "events_api",
        }
        if happening.kind == "events_api":
            envelope |= {"retry_attempt": happening.attempts, "retry_reason": happening.reason}
        return self.is_mute or await _sent(link, envelope)

    def _admit(self, link: ServerConnection, request: Request) -> Response | None:
        ticket = request.path.partition("ticket=")[2].partition("&")[0]
        if ticket not in self._tickets:
            return link.respond(401, "the ticket is not good\n")
        self._tickets.discard(ticket)
        return None

    async def _serve(self, link: ServerConnection) -> None:
        if len(self._under_way) >= CONNECTIONS_MAX:
            await _sent(link, {"type": "disconnect", "reason": "too_many_websockets"})
            return
        self.opened += 1
        hello = {
            "type": "hello",
            "num_connections": len(self._under_way) + 1,
            "debug_info": {
                "host": "applink-1",
                "build_number": 1,
                "approximate_connection_time": 18_060,
            },
            "connection_info": {"app_id": self.app_id},
        }
        if not self.is_mute:
            await _sent(link, hello)
        self._under_way[link] = []
        try:
            async for message in link:
                self._hear(message)
        except ConnectionClosed:
            pass
        finally:
            for envelope_id in self._under_way.pop(link):
                self._happenings.fail(envelope_id, "connection_closed")

    def _hear(self, message: str | bytes) -> None:
        with suppress(ValueError, TypeError, AttributeError):
            told = json.loads(message)
            self._happenings.acknowledge(told["envelope_id"], told.get("payload"))

    async def _tell_all(self, message: JSON) -> None:
        for each in self.connections:
            await _sent(each, message)


async def _sent(link: ServerConnection, message: JSON) -> bool:
    try:
        await link.send(json.dumps(message))
    except ConnectionClosed:
        return False
    return True
