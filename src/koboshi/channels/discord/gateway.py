"""One connection to the gateway: frames in order, heartbeats, and how it ended.

A heartbeat names the newest event that is *stored*, not the newest one that was received: what the
platform believes that we have is durable. A connection on which nothing was heard between two
heartbeats is dead, whatever the system says, and is closed. Closing with 1000 or 1001 would end the
session (`gateway.mdx`, Disconnecting), so every close of ours has another code.
"""

import math
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import msgspec
from anyio import (
    BrokenResourceError,
    ClosedResourceError,
    EndOfStream,
    WouldBlock,
    create_memory_object_stream,
    create_task_group,
    fail_after,
    move_on_after,
    sleep,
)
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from koboshi.channels.common.calls import NotReached
from koboshi.channels.common.serving import one_of
from koboshi.channels.discord.types import GatewayFrame, Hello
from koboshi.domain.resource_exhaustion import shortage_behind

OPEN_SECONDS = 20.0
CLOSE_SECONDS = 2.0
STAYS = 4900
"""Our close code: any but 1000 and 1001 keeps the session."""
FRAME_BYTES_MAX = 64 * 1024 * 1024
"""A server with many channels and threads is one frame."""
FRAMES_WAITING_MAX = 1_000
HEARTBEAT_SECONDS_MAX = 120.0

DISPATCH, HEARTBEAT, IDENTIFY, RESUME = 0, 1, 2, 6
RECONNECT, INVALID_SESSION, HELLO, ACK = 7, 9, 10, 11

_frame = msgspec.json.Decoder(GatewayFrame)


class GatewayNotReached(NotReached):
    """Nothing answers at the address."""


class GatewayClosed(Exception):
    """The connection has ended. The code is the platform's; None if it just broke."""

    def __init__(self, code: int | None, reason: str) -> None:
        super().__init__(f"closed with {code}: {reason}" if code else reason)
        self.code = code


@dataclass(slots=True, eq=False)
class GatewayLink:
    socket: ClientConnection
    stored: Callable[[], int | None]
    """The number of the newest event that is stored."""
    on_heard: Callable[[], None]
    """Called with every frame."""
    _out: MemoryObjectSendStream[GatewayFrame] = field(init=False)
    _in: MemoryObjectReceiveStream[GatewayFrame] = field(init=False)
    _is_heard: bool = True
    _is_blocked: bool = False
    """We are slower than the platform, so that nothing is read."""
    _end: GatewayClosed | None = None

    def __post_init__(self) -> None:
        self._out, self._in = create_memory_object_stream[GatewayFrame](FRAMES_WAITING_MAX)

    async def send(self, op: int, content: object) -> None:
        """Say something. A connection that has ended is noticed by the reader."""
        try:
            await self.socket.send(msgspec.json.encode({"op": op, "d": content}).decode())
        except ConnectionClosed:
            return

    async def batch(self, count_max: int) -> list[GatewayFrame]:
        """The frames that have come, at least one. Raises GatewayClosed behind the last one."""
        try:
            frames = [await self._in.receive()]
        except (EndOfStream, ClosedResourceError):
            raise self._end or GatewayClosed(None, "the connection broke") from None
        with suppress(WouldBlock, EndOfStream):
            while len(frames) < count_max:
                frames.append(self._in.receive_nowait())
        return frames

    async def read(self) -> None:
        """Take frames in until the connection ends."""
        try:
            async for raw in self.socket:
                self._is_heard = True
                self.on_heard()
                frame = _frame.decode(raw)
                if frame.op == HEARTBEAT:
                    await self.send(HEARTBEAT, self.stored())
                elif frame.op != ACK:
                    await self._pass_on(frame)
            code = self.socket.close_code
            self._end = GatewayClosed(code, self.socket.close_reason or "")
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd is not None else None
            self._end = GatewayClosed(code, str(closed.rcvd.reason if closed.rcvd else closed))
        except msgspec.DecodeError as error:
            self._end = GatewayClosed(None, f"a frame cannot be read: {error}")
        except BrokenResourceError:  # no one takes more frames
            self._end = self._end or GatewayClosed(None, "the connection was given up")
        finally:
            self._out.close()

    async def beat(self, interval_ms: int) -> None:
        """Heartbeats until cancelled. The first one comes at a random time (`gateway.mdx`)."""
        seconds = min(max(interval_ms / 1000, 0.05), HEARTBEAT_SECONDS_MAX)
        await sleep(seconds * random.random())
        while True:
            self._is_heard = False
            await self.send(HEARTBEAT, self.stored())
            await sleep(seconds)
            if not self._is_heard and not self._is_blocked:
                self._end = GatewayClosed(None, "nothing was heard between two heartbeats")
                await self.close()
                return

    async def close(self) -> None:
        """Close it so that the session stays."""
        self._in.close()
        with move_on_after(CLOSE_SECONDS, shield=True):
            await self.socket.close(STAYS, "koboshi comes back")

    async def _pass_on(self, frame: GatewayFrame) -> None:
        try:
            self._out.send_nowait(frame)
        except WouldBlock:
            self._is_blocked = True
            await self._out.send(frame)
            self._is_blocked = False


@asynccontextmanager
async def gateway_link(
    address: str, agent: str, stored: Callable[[], int | None], on_heard: Callable[[], None]
) -> AsyncIterator[GatewayLink]:
    """A connection that has been greeted, with its heart beating. Raises GatewayNotReached."""
    try:
        with fail_after(OPEN_SECONDS):
            socket = await connect(
                f"{address.rstrip('/')}/?v=10&encoding=json",
                open_timeout=None,
                close_timeout=CLOSE_SECONDS,
                ping_interval=None,
                max_size=FRAME_BYTES_MAX,
                compression=None,
                user_agent_header=agent,
            )
    except (OSError, InvalidHandshake, InvalidURI, EOFError) as error:
        raise GatewayNotReached(f"the gateway: {type(error).__name__}") from shortage_behind(error)
    link = GatewayLink(socket, stored, on_heard)
    try:
        async with create_task_group() as tasks:
            tasks.start_soon(link.read)
            tasks.start_soon(link.beat, await _greeting(link))
            yield link
            tasks.cancel_scope.cancel()
    except ExceptionGroup as group:
        raise one_of(group) from None
    finally:
        await link.close()


async def _greeting(link: GatewayLink) -> int:
    """How often the heart is to beat."""
    try:
        with fail_after(OPEN_SECONDS):
            (frame,) = await link.batch(1)
    except TimeoutError:
        raise GatewayNotReached("the gateway sent no greeting") from None
    if frame.op != HELLO:
        raise GatewayClosed(None, f"the gateway begins with {frame.op}")
    interval_ms = msgspec.json.decode(frame.content, type=Hello).heartbeat_interval
    return min(max(interval_ms, 1), math.ceil(HEARTBEAT_SECONDS_MAX * 1000))
