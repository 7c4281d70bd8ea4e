"""The gateway over a WebSocket: hello, heartbeats, identify, resume, and how it closes.

What is refused, and with which code, follows `events/gateway.mdx` and
`topics/opcodes-and-status-codes.mdx` of the public API documentation.
"""

import asyncio
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from anyio import move_on_after, sleep_forever
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from tests.fakes.discord.sessions import GatewaySession, Sessions, as_event
from tests.fakes.discord.state import JSON
from tests.fakes.discord.world import MESSAGE_CONTENT, DiscordWorld

ALL_INTENTS = sum(1 << bit for bit in (*range(17), 20, 21, 24, 25))
PRIVILEGED_OFF = (1 << 1) | (1 << 8)
"""Intents that the application of the tests has not switched on."""
PAYLOAD_BYTES_MAX = 4_096
SENDS_MAX, SENDS_WITHIN_S = 120, 60.0
FULL = 200
KEEPS_NO_SESSION = frozenset({1000, 1001})

DISPATCH, HEARTBEAT, IDENTIFY, RESUME = 0, 1, 2, 6
RECONNECT, INVALID_SESSION, HELLO, ACK = 7, 9, 10, 11
IGNORED = frozenset({3, 4, 8, 31, 43})


class Closing(Exception):
    """The server ends the connection with this code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


@dataclass(slots=True, eq=False)
class Link:
    """One connection of a client."""

    socket: ServerConnection
    outgoing: "asyncio.Queue[JSON | Closing]" = field(default_factory=asyncio.Queue)
    session: GatewaySession | None = None
    packer: "zlib._Compress | None" = None
    heard_at: float = 0.0
    believes: int | None = None
    """The newest event that the client says it has."""
    sends: list[float] = field(default_factory=list)

    async def write(self) -> None:
        while True:
            each = await self.outgoing.get()
            if isinstance(each, Closing):
                await self.socket.close(each.code, each.reason)
                return
            text = json.dumps(each)
            if self.packer is None:
                await self.socket.send(text)
            else:
                packed = self.packer.compress(text.encode())
                await self.socket.send(packed + self.packer.flush(zlib.Z_SYNC_FLUSH))


@dataclass(slots=True)
class FakeGateway:
    world: DiscordWorld
    token: str
    heartbeat_ms: int = 41_250
    acks: bool = True
    """False: heartbeats are not acknowledged, as on a connection that is dead on one side."""
    is_silent: bool = False
    """True: nothing at all is said to new connections."""
    begins_none: bool = False
    """True: connections are greeted and their hearts beat, but no session begins."""
    sessions: Sessions = field(init=False)
    links: set[Link] = field(default_factory=set)
    closes: list[int | None] = field(default_factory=list)
    """How clients have closed their connections, in order; None where they just went."""
    identified_with: list[JSON] = field(default_factory=list)
    port: int = 0
    _server: Server | None = None

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.world.clock)
        self.world.dispatch = self.sessions.dispatch

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    @property
    def is_full(self) -> bool:
        """Whether a client takes events more slowly than they come."""
        return any(link.outgoing.qsize() > FULL for link in self.links)

    async def start(self) -> None:
        self._server = await serve(
            self._serve, "127.0.0.1", self.port, ping_interval=None, compression=None
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self.drop()
        self._server.close(close_connections=True)
        await self._server.wait_closed()

    # What a test does to the connections

    def drop(self) -> None:
        """Every connection breaks."""
        for link in list(self.links):
            link.socket.transport.abort()

    def close(self, code: int) -> None:
        self._say_to_all(lambda link: link.outgoing.put_nowait(Closing(code, "as the test says")))

    def reconnect(self) -> None:
        self._say_to_all(lambda link: link.outgoing.put_nowait({"op": RECONNECT, "d": None}))

    def invalidate(self) -> None:
        self.sessions.expire()
        self._say_to_all(lambda link: link.outgoing.put_nowait({"op": INVALID_SESSION, "d": False}))

    def ask_for_heartbeat(self) -> None:
        self._say_to_all(lambda link: link.outgoing.put_nowait({"op": HEARTBEAT, "d": None}))

    def _say_to_all(self, say: Callable[[Link], None]) -> None:
        for link in list(self.links):
            say(link)

    # One connection

    async def _serve(self, socket: ServerConnection) -> None:
        link = Link(socket)
        self.links.add(link)
        try:
            async with asyncio.TaskGroup() as tasks:
                writer = tasks.create_task(link.write())
                watch = tasks.create_task(self._watch(link))
                await self._read(link)
                watch.cancel()
                if socket.close_code is not None or link.outgoing.empty():
                    writer.cancel()
        except* ConnectionClosed:
            pass
        finally:
            self.links.discard(link)
            self._leave(link)

    def _leave(self, link: Link) -> None:
        received = link.socket.protocol.close_rcvd
        code = (
            received.code
            if received is not None and link.socket.protocol.close_rcvd_then_sent
            else None
        )
        self.closes.append(code)
        session = link.session
        if session is None or session.send is None or session.send != link.outgoing.put_nowait:
            return
        session.send = None
        session.left_at = self.world.clock()
        if code in KEEPS_NO_SESSION:
            session.is_over = True

    async def _watch(self, link: Link) -> None:
        """A client whose heart does not beat is sent away, and may resume."""
        loop = asyncio.get_running_loop()
        limit_s = self.heartbeat_ms / 1000 * 1.5 + 5
        link.heard_at = loop.time()
        while (rest_s := link.heard_at + limit_s - loop.time()) > 0:
            with move_on_after(rest_s):
                await sleep_forever()
        link.outgoing.put_nowait(Closing(4000, "no heartbeat"))

    async def _read(self, link: Link) -> None:
        try:
            self._greet(link)
            async for frame in link.socket:
                self._take(link, frame)
        except Closing as closing:
            link.outgoing.put_nowait(closing)
        except ConnectionClosed:
            return

    def _greet(self, link: Link) -> None:
        request = link.socket.request
        assert request is not None
        asked = parse_qs(urlsplit(request.path).query)
        if asked.get("v") != ["10"]:
            raise Closing(4012, "Invalid API version")
        if asked.get("encoding", ["json"]) != ["json"]:
            raise Closing(4002, "only JSON is spoken here")
        if asked.get("compress") == ["zlib-stream"]:
            link.packer = zlib.compressobj()
        if not self.is_silent:
            hello = {"op": HELLO, "d": {"heartbeat_interval": self.heartbeat_ms}}
            link.outgoing.put_nowait({"t": None, "s": None, **hello})

    def _take(self, link: Link, frame: str | bytes) -> None:
        now = asyncio.get_running_loop().time()
        link.sends = [each for each in link.sends if now - each < SENDS_WITHIN_S] + [now]
        if len(link.sends) > SENDS_MAX:
            raise Closing(4008, "You are being rate limited.")
        if len(frame) > PAYLOAD_BYTES_MAX:
            raise Closing(4002, "Error while decoding payload.")
        try:
            asked = json.loads(frame)
            op, content = asked["op"], asked.get("d")
        except (ValueError, KeyError, TypeError):
            raise Closing(4002, "Error while decoding payload.") from None
        match op:
            case 1:
                self._beat(link, content, now)
            case 2 | 6 if self.begins_none:
                pass
            case 2:
                self._identify(link, content)
            case 6:
                self._resume(link, content)
            case _ if op in IGNORED:
                if link.session is None:
                    raise Closing(4003, "Not authenticated.")
            case _:
                raise Closing(4001, "Unknown opcode.")

    def _beat(self, link: Link, content: object, now: float) -> None:
        if content is not None and not isinstance(content, int):
            raise Closing(4002, "Error while decoding payload.")
        link.heard_at, link.believes = now, content
        if self.acks:
            link.outgoing.put_nowait({"op": ACK, "d": None, "t": None, "s": None})

    def _identify(self, link: Link, content: object) -> None:
        if link.session is not None:
            raise Closing(4005, "Already authenticated.")
        if not isinstance(content, dict) or not isinstance(content.get("properties"), dict):
            raise Closing(4002, "Error while decoding payload.")
        self._check_token(content)
        intents = content.get("intents")
        if not isinstance(intents, int) or intents & ~ALL_INTENTS:
            raise Closing(4013, "Invalid intent(s).")
        if intents & PRIVILEGED_OFF or (
            intents & MESSAGE_CONTENT and not self.world.has_message_content
        ):
            raise Closing(4014, "Disallowed intent(s).")
        self.identified_with.append(content)
        session = self.sessions.begin(intents)
        self._attach(link, session)
        session.add("READY", self._ready(session))
        if intents & 1:
            for guild in self.world.guilds.values():
                session.add("GUILD_CREATE", guild.as_created())

    def _ready(self, session: GatewaySession) -> JSON:
        bot = self.world.bot
        return {
            "v": 10,
            "user": bot.as_self(),
            "guilds": [
                {"id": str(each.guild_id), "unavailable": True}
                for each in self.world.guilds.values()
            ],
            "session_id": session.session_id,
            "session_type": "normal",
            "resume_gateway_url": self.url,
            "shard": [0, 1],
            "application": {"id": str(bot.user_id), "flags": self.application_marks},
            "private_channels": [],
            "relationships": [],
            "presences": [],
            "guild_join_requests": [],
            "geo_ordered_rtc_regions": [],
            "user_settings": {},
            "auth": {},
            "_trace": [],
        }

    @property
    def application_marks(self) -> int:
        """The flags of the application: 1 << 19 says that a small bot may read messages."""
        return 1 << 19 if self.world.has_message_content else 0

    def _resume(self, link: Link, content: object) -> None:
        if link.session is not None:
            raise Closing(4005, "Already authenticated.")
        if not isinstance(content, dict) or not isinstance(content.get("seq"), int):
            raise Closing(4002, "Error while decoding payload.")
        self._check_token(content)
        session = self.sessions.found(content.get("session_id"))
        if session is None:
            self.sessions.refused += 1
            link.outgoing.put_nowait({"op": INVALID_SESSION, "d": False, "t": None, "s": None})
            return
        if content["seq"] > session.seq or content["seq"] < 0:
            raise Closing(4007, "Invalid seq.")
        missed = session.missed(content["seq"])
        if missed is None:
            link.outgoing.put_nowait({"op": INVALID_SESSION, "d": False, "t": None, "s": None})
            return
        self.sessions.resumed += 1
        for seq, name, event in missed:
            link.outgoing.put_nowait(as_event(seq, name, event))
        self._attach(link, session)
        session.add("RESUMED", {"_trace": []})

    def _attach(self, link: Link, session: GatewaySession) -> None:
        for other in self.links:
            if other.session is session:
                other.outgoing.put_nowait(Closing(4000, "resumed elsewhere"))
        link.session, session.left_at = session, None
        session.send = link.outgoing.put_nowait

    def _check_token(self, content: JSON) -> None:
        token = content.get("token")
        if not isinstance(token, str) or token.removeprefix("Bot ") != self.token:
            raise Closing(4004, "Authentication failed.")
