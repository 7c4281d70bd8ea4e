"""The Matrix channel in the test's own loop, with a real homeserver behind it."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio import create_task_group

from koboshi.channels.matrix.channel import MatrixChannel
from koboshi.channels.matrix.options import MatrixOptions
from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import Near
from koboshi.domain.route import Route
from koboshi.ports.channel import NO_WATERMARKS, Accept, Inbound, Receipt
from tests.channels.fakes import FakeClock
from tests.harness.polling import until, until_asked
from tests.harness.synapse import Person, Synapse

MAIN = ChannelName("matrix:main")
NOTHING_NEAR = Near(before=(), known=(), is_alone=True)


async def no_watermarks(account: str) -> Mapping[str, str]:
    return {}


async def all_allowed(person: str) -> bool:
    return True


@asynccontextmanager
async def a_channel(bot: Person, **options: Any) -> AsyncIterator["RememberingChannel"]:
    """The channel of an account; without limits of its own unless told."""
    given: dict[str, Any] = {
        "name": MAIN,
        "homeserver": bot.server.url,
        "user": bot.user,
        "token": bot.token,
        "ambiguous": "probe",
        "per_second": 0,
        "home": Path("nowhere"),
        "watermarks": no_watermarks,
        "is_allowed": all_allowed,
        **options,
    }
    clock = given.pop("clock", None) or FakeClock()
    channel = RememberingChannel(MatrixOptions(**given), clock)
    try:
        yield channel
    finally:
        await channel.close()


class RememberingChannel(MatrixChannel):
    """Knows what it was given to take messages in, so that a test can bring one again."""

    accept: Accept | None = None
    place: str | None = None
    """Where the first connection began."""
    taken: Sequence[str] = ()

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        self.accept, self.taken = accept, ()

        async def noted(
            batch: Sequence[Inbound],
            cursor: str | None = None,
            watermarks: Mapping[str, str] = NO_WATERMARKS,
        ) -> tuple[Receipt, ...]:
            receipts = await accept(batch, cursor, watermarks)
            self.place = self.place or cursor
            self.taken = [*self.taken, *(each.external_id for each in batch)]
            return receipts

        await super().receive(cursor, noted)


@dataclass
class MatrixRig:
    """What the shared contract holds: see `test_contract.Rig`."""

    channel: RememberingChannel
    ann: Person
    bot: Person
    room: str
    root: str
    near: Near = NOTHING_NEAR
    _said: dict[int, str] = field(default_factory=dict)

    @property
    def route(self) -> Route:
        return Route(channel=MAIN, chat=self.room, thread=self.root)

    async def ready(self) -> None:
        await until(lambda: self.channel.trouble is None, "the channel is up")

    async def write(self, text: str, number: int) -> bool:
        if number in self._said:
            return await self._comes_again()
        await self.ready()  # a first connection takes nothing from before
        relation = {"rel_type": "m.thread", "event_id": self.root}
        said = await self.ann.say(self.room, text, **{"m.relates_to": relation})
        self._said[number] = said
        await until_asked(lambda: self._is_read(said), "the event is read, or cannot be")
        return self.channel.trouble is None

    async def _is_read(self, event_id: str) -> bool:
        """We show that we have read an event when it is stored, and not before."""
        wanted = {"room": {"rooms": [self.room], "ephemeral": {"types": ["m.receipt"]}}}
        answer = await self.ann.ask("GET", "/sync", timeout=0, filter=json.dumps(wanted))
        news = answer["rooms"]["join"][self.room]["ephemeral"]["events"]
        read = [event["content"].get(event_id, {}).get("m.read", {}) for event in news]
        return any(self.bot.user in each for each in read) or self.channel.trouble is not None

    async def _comes_again(self) -> bool:
        """A connection from the first place on brings the same events again."""
        accept = self.channel.accept
        assert accept is not None
        async with a_channel(self.bot) as other, create_task_group() as tasks:
            tasks.start_soon(other.receive, self.channel.place, accept)
            await until(lambda: other.taken, "the event comes again")
            tasks.cancel_scope.cancel()
        return True


@asynccontextmanager
async def rig_at(server: Synapse) -> AsyncIterator[MatrixRig]:
    ann, bot = await server.person("ann"), await server.person("bot")
    room = await ann.room(bot.user)
    await bot.join(room)
    root = await ann.say(room, "a thread")
    async with a_channel(bot) as channel:
        yield MatrixRig(channel, ann, bot, room, root)
