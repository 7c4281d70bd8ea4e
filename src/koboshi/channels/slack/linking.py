"""The connections of Socket Mode: always one, and two while Slack renews it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from anyio import (
    Event,
    WouldBlock,
    create_memory_object_stream,
    create_task_group,
    move_on_after,
)
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.common.watched import Watch, run_watched
from koboshi.channels.slack.api import SlackApi
from koboshi.channels.slack.sockets import Arrived, SocketLink, opened
from koboshi.channels.slack.types import SlackReply
from koboshi.domain.errors import ChannelUnusable
from koboshi.ports.clock import Clock

BATCH_MAX = 100
"""Envelopes that are stored in one transaction, and that wait for one."""
GOODBYE_SECONDS = 30.0
"""So long an old connection is read behind the opening of the new one."""

Take = Callable[[Sequence[tuple[str, bytes]]], Awaitable[list[bool]]]


@dataclass(slots=True, kw_only=True)
class Links:
    api: SlackApi
    app_token: str = field(repr=False)
    app_id: str
    """The app that the bot is of; empty where that is not known."""
    clock: Clock
    take: Take
    """Stores what came. Returns for each whether it may be acknowledged."""
    hear: Callable[[], None]
    check: Callable[..., SlackReply]
    """Raises for an answer that is none."""

    async def keep(self, begin: Callable[[], Awaitable[None]]) -> None:
        """Stay connected until cancelled. `begin` is awaited when the first connection is open and
        before anything of it is taken. Raises NotReached, NoAnswer, ConnectionSilent,
        ChannelUnusable."""
        put, arriving = create_memory_object_stream[Arrived](BATCH_MAX)
        async with create_task_group() as tasks, put, arriving:
            before: _Tenure | None = None
            while True:
                tenure = _Tenure()
                tasks.start_soon(self._hold, tenure, put)
                await tenure.is_open.wait()
                if before is None:
                    await begin()
                    tasks.start_soon(self._keep_taking, arriving)
                else:
                    before.is_replaced.set()
                before = tenure
                await tenure.is_ending.wait()

    async def _hold(self, tenure: "_Tenure", put: MemoryObjectSendStream[Arrived]) -> None:
        """One connection, from its opening to its end. Returns if another one is open by then."""
        answered = await self.api.open_socket(self.app_token)
        address = self.check(answered, "apps.connections.open").url
        watch = Watch(self.clock)

        def hear() -> None:
            watch.hear()
            self.hear()

        async def use(link: SocketLink) -> None:
            told = await link.greeted()
            if told and self.app_id and told != self.app_id:
                raise ChannelUnusable(
                    f"the app-level token is of the app {told}, the bot token of {self.app_id}: "
                    "take both from one app at api.slack.com/apps"
                )
            tenure.is_open.set()
            await self._read(link, tenure, put, hear)

        async def ping(link: SocketLink) -> None:
            await link.ping(hear)

        await run_watched(opened(address, tenure.is_ending), use, ping, watch)
        if not tenure.is_replaced.is_set():
            raise NoAnswer("the connection broke off")

    async def _read(
        self,
        link: SocketLink,
        tenure: "_Tenure",
        put: MemoryObjectSendStream[Arrived],
        hear: Callable[[], None],
    ) -> None:
        """Read until Slack closes it, or for a while behind the opening of the next one."""

        async def say_goodbye() -> None:
            await tenure.is_replaced.wait()
            with move_on_after(GOODBYE_SECONDS):
                await Event().wait()
            reading.cancel_scope.cancel()

        async with create_task_group() as reading:
            reading.start_soon(say_goodbye)
            await link.read(put.send, hear)
            reading.cancel_scope.cancel()

    async def _keep_taking(self, arriving: MemoryObjectReceiveStream[Arrived]) -> None:
        """Store what came, then acknowledge it, many in one transaction where many wait."""
        async for first in arriving:
            batch = [first]
            while len(batch) < BATCH_MAX:
                try:
                    batch.append(arriving.receive_nowait())
                except WouldBlock:
                    break
            taken = await self.take(
                [(each.envelope.type, bytes(each.envelope.payload)) for each in batch]
            )
            for each, is_taken in zip(batch, taken, strict=True):
                if is_taken:
                    await each.link.acknowledge(each.envelope.envelope_id)


@dataclass(slots=True, eq=False)
class _Tenure:
    """One connection in its time."""

    is_open: Event = field(default_factory=Event)
    is_ending: Event = field(default_factory=Event)
    is_replaced: Event = field(default_factory=Event)
