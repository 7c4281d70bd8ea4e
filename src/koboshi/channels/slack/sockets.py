"""One connection of Socket Mode.

Slack's own clients read into queues without bounds, in tasks and threads of their own, log what a
listener raises, and connect again without saying that there was a gap. Here what is read waits in a
queue of a fixed length, an error ends the task tree, and the caller knows of every gap.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import msgspec
import structlog
from anyio import Event, fail_after, move_on_after

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.slack.types import SlackEnvelope
from koboshi.domain.errors import ChannelUnusable

if TYPE_CHECKING:
    from asyncio import Future

    from websockets.asyncio.client import ClientConnection

log = structlog.get_logger()

OPEN_SECONDS = 15.0
HELLO_SECONDS = 15.0
CLOSE_SECONDS = 2.0
MESSAGE_BYTES_MAX = 4_000_000
READ_AHEAD_MAX = 16
OFF = "link_disabled"
CROWDED = "too_many_websockets"
_envelope = msgspec.json.Decoder(SlackEnvelope)


@dataclass(frozen=True, slots=True, eq=False)
class Arrived:
    """An envelope, and the connection that it came over."""

    envelope: SlackEnvelope
    link: "SocketLink"


@dataclass(slots=True, eq=False)
class SocketLink:
    connection: "ClientConnection"
    is_ending: Event
    """Slack will close it, and wants another one in its place."""

    async def greeted(self) -> str:
        """Wait until Slack says that it is heard. Returns the id of the app, empty if Slack does
        not say it. Raises NoAnswer, ChannelUnusable."""
        try:
            with fail_after(HELLO_SECONDS):
                while (hello := await self._next()).type != "hello":
                    pass
        except TimeoutError:
            raise NoAnswer("the socket said nothing") from None
        return hello.greets.app_id

    async def read(
        self, take: Callable[[Arrived], Awaitable[None]], hear: Callable[[], None]
    ) -> None:
        """Hand on what comes until the connection is closed. Raises ChannelUnusable."""
        while True:
            try:
                envelope = await self._next()
            except NoAnswer:
                return
            hear()
            if envelope.envelope_id:
                await take(Arrived(envelope, self))

    async def acknowledge(self, envelope_id: str) -> None:
        """Tell Slack that we have it. Over a connection that is closed Slack hears nothing, and
        brings it again."""
        from websockets.exceptions import ConnectionClosed

        try:
            await self.connection.send(msgspec.json.encode({"envelope_id": envelope_id}).decode())
        except ConnectionClosed:
            log.debug("acknowledgement_not_sent", envelope=envelope_id)

    async def ping(self, hear: Callable[[], None]) -> None:
        """Ask for a sign; `hear` is called when it comes."""
        from websockets.exceptions import ConnectionClosed

        try:
            pong = cast("Future[float]", await self.connection.ping())
        except ConnectionClosed:
            return
        pong.add_done_callback(partial(_heard, hear))

    async def _next(self) -> SlackEnvelope:
        """Raises NoAnswer where the connection has ended, ChannelUnusable where it has for good."""
        from websockets.exceptions import ConnectionClosed

        while True:
            try:
                envelope = _envelope.decode(await self.connection.recv())
            except ConnectionClosed as closed:
                raise NoAnswer(f"the socket was closed: {closed}"[:200]) from None
            except (msgspec.DecodeError, RecursionError) as error:
                log.warning("envelope_broken", why=str(error))
                continue
            if envelope.type != "disconnect":
                return envelope
            if envelope.reason == OFF:
                raise ChannelUnusable(
                    "Socket Mode is switched off for this app; switch it on at api.slack.com/apps"
                )
            if envelope.reason == CROWDED:
                raise NoAnswer("the app has too many sockets open")
            self.is_ending.set()


@asynccontextmanager
async def opened(address: str, is_ending: Event) -> "AsyncIterator[SocketLink]":
    """A connection to the address of a socket, within a bound. It does not ping by itself: silence
    is watched by the caller. It is closed within a bound, also when the caller is cancelled. Raises
    NotReached, NoAnswer."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidHandshake, InvalidURI

    try:
        connection = await connect(
            address,
            open_timeout=OPEN_SECONDS,
            close_timeout=CLOSE_SECONDS,
            ping_interval=None,
            max_size=MESSAGE_BYTES_MAX,
            max_queue=READ_AHEAD_MAX,
            compression=None,
            user_agent_header="koboshi",
        )
    except (InvalidHandshake, InvalidURI) as error:
        raise NoAnswer(f"the socket was refused: {type(error).__name__}") from None
    except OSError as error:
        raise NotReached(type(error).__name__) from error
    try:
        yield SocketLink(connection, is_ending)
    finally:
        with move_on_after(CLOSE_SECONDS, shield=True):
            await connection.close()
        connection.transport.abort()


def _heard(hear: Callable[[], None], pong: "Future[float]") -> None:
    """A pong came, or the connection ended while we waited for it."""
    if not pong.cancelled() and pong.exception() is None:
        hear()
