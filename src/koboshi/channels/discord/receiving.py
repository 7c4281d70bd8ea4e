"""Events of Discord into the inbox, and back to them after any stop.

Theory of operation. The gateway numbers the events of a session and keeps them for some minutes for
a client that comes back (RESUME). No event is acknowledged. So we are the ones who must know how
far we are:

* The session, its address and the number of the newest event are the cursor. It is part of the
  commit that holds the events up to that number, so a resume from it brings everything else again.
  What comes twice is a duplicate key.
* Whenever a session cannot be resumed, a new one is begun, and the histories of the channels are
  read from their watermarks on (`catching_up`): of every channel and active thread of every server,
  and of the private channels of people who wrote before or are allowed.
* The new session becomes the cursor when no channel is behind any more. Until then the old one
  stays, so a crash in between begins a new session again and reads on from the watermarks.
* A first connection stores the moment (FLOOR) before it begins. Nothing older is ever taken.
* Interactions are committed, then answered with a word that only that person sees. Everything else
  about them is owed like any other answer. One that comes while we are down fails visibly, because
  the platform waits three seconds.
* Every close of ours keeps the session. `trouble` is None while a session is ours.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import structlog
from anyio import create_task_group, move_on_after, sleep
from anyio.abc import TaskGroup

from koboshi.channels.common.reachable import Reachable
from koboshi.channels.discord.client import AGENT, DiscordApi
from koboshi.channels.discord.codec import MessageReader
from koboshi.channels.discord.cursor import SessionPlace, place_in
from koboshi.channels.discord.events import EventIntake
from koboshi.channels.discord.gateway import (
    DISPATCH,
    IDENTIFY,
    INVALID_SESSION,
    RECONNECT,
    RESUME,
    GatewayClosed,
    GatewayLink,
    GatewayNotReached,
    gateway_link,
)
from koboshi.channels.discord.introduction import Introduction
from koboshi.channels.discord.options import DiscordOptions
from koboshi.channels.discord.places import id_at
from koboshi.channels.discord.types import GatewayFrame
from koboshi.channels.discord.watermarks import FLOOR, read_marks
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.hearing import Hearing
from koboshi.ports.channel import Accept, Watermarks
from koboshi.ports.clock import Clock

log = structlog.get_logger()

INTENTS = (1 << 0) | (1 << 9) | (1 << 12) | (1 << 15)
"""Servers, their messages, private messages, and what is in them."""
BATCH_MAX = 20
"""Events in one commit."""
INVALID_SECONDS = 5.0
"""A second session within five seconds is refused (`gateway.mdx`, Rate Limiting)."""
BEGIN_SECONDS = 60.0
"""So long without an event before the session is ours, and the connection is left."""
STEADY_SECONDS = 5.0
SHORT_MAX = 2
"""So many connections that ended at once follow each other without a pause."""
BEGIN_ANEW = frozenset({1000, 1001, 4003, 4007, 4009})
"""Close codes behind which the session is over."""
UNUSABLE = {
    4004: "Discord refuses the token; the bot's page in the Developer Portal has the right one",
    4010: "Discord refuses the shard",
    4011: "the bot is in so many servers that it has to be sharded, which is not supported",
    4012: "Discord does not speak version 10 of its gateway any more",
    4013: "Discord does not know the intents that are asked for",
    4014: "the bot may not read messages: switch on Message Content Intent on its page in the "
    "Developer Portal (Bot, Privileged Gateway Intents)",
}


@dataclass(slots=True, kw_only=True)
class DiscordReceiving(Reachable):
    in_words = (*Reachable.in_words, GatewayClosed)

    api: DiscordApi
    options: DiscordOptions
    clock: Clock
    watermarks: Watermarks
    _intake: EventIntake | None = field(default=None, init=False)
    _heard_ms: int | None = None

    @property
    def hearing(self) -> Hearing:
        """When the platform was last heard, and how many channels may hold messages that are not
        stored yet."""
        behind = 0 if self._intake is None else self._intake.behind
        since_ms = None if self._intake is None else self._intake.behind_since_ms
        return Hearing(heard_ms=self._heard_ms, chats_behind=behind, behind_since_ms=since_ms)

    def _hear(self) -> None:
        self._heard_ms = self.clock.now_ms()

    async def run(self, cursor: str | None, accept: Accept) -> None:
        """Receive until cancelled."""
        with self.connecting():
            async with create_task_group() as tasks:
                await self._run(cursor, accept, tasks)

    async def _run(self, cursor: str | None, accept: Accept, tasks: TaskGroup) -> None:
        introduction = Introduction(api=self.api, options=self.options)
        me, now = await introduction.me()
        await accept([])
        marks = read_marks(await self.watermarks(self.options.account))
        if marks.floor is None:
            first = {FLOOR: str(now or id_at(self.clock.now_ms()))}
            await accept([], None, first)
            marks.keep(first)
        tasks.start_soon(introduction.register)
        reader = MessageReader(
            channel=self.options.name, me=me, chars_max=self.options.message_chars_max
        )
        self._intake = EventIntake(
            api=self.api,
            reader=reader,
            marks=marks,
            accept=accept,
            tasks=tasks,
            clock=self.clock,
            people=self.options.people,
            may_read=introduction.may_read,
        )
        place = place_in(cursor)
        short = 0
        while True:
            began = self.clock.monotonic()
            place = await self._connect(place, introduction, self._intake)
            is_steady = self.clock.monotonic() - began > STEADY_SECONDS
            short = 0 if is_steady else short + 1
            if short > SHORT_MAX:
                await sleep(INVALID_SECONDS * (0.2 + 0.8 * random.random()))

    async def _connect(
        self, place: SessionPlace, introduction: Introduction, intake: EventIntake
    ) -> SessionPlace:
        """Live on one connection. Returns the session to come back to. Raises if the platform
        cannot be had, or wants us to change something."""
        address = place.url if place.is_known else await introduction.gateway()
        intake.follow(place)
        try:
            async with gateway_link(address, AGENT, intake.stored_seq, self._hear) as link:
                await self._introduce(link, place)
                while True:
                    frames = await self._frames(link, intake)
                    ended = await self._take(frames, intake)
                    if ended is not None:
                        return ended
        except GatewayClosed as closed:
            return self._after(closed, intake)
        except GatewayNotReached:
            # The address of a session may go out of use. Any gateway can resume it.
            common = await introduction.gateway()
            if not place.is_known or place.url == common:
                raise
            return replace(place, url=common)
        finally:
            self.trouble = self.trouble or "the connection to Discord is made anew"

    async def _frames(self, link: GatewayLink, intake: EventIntake) -> list[GatewayFrame]:
        """What comes next: once the session is ours, whenever it comes; before that in time."""
        if intake.is_ours:
            return await link.batch(BATCH_MAX)
        with move_on_after(BEGIN_SECONDS):
            return await link.batch(BATCH_MAX)
        raise GatewayClosed(None, "no session was begun in time")

    async def _introduce(self, link: GatewayLink, place: SessionPlace) -> None:
        token = self.options.token
        if place.is_known:
            asked = {"token": token, "session_id": place.session, "seq": place.seq}
            await link.send(RESUME, asked)
            return
        ours = {"os": "linux", "browser": "koboshi", "device": "koboshi"}
        await link.send(IDENTIFY, {"token": token, "intents": INTENTS, "properties": ours})

    async def _take(
        self, frames: Sequence[GatewayFrame], intake: EventIntake
    ) -> SessionPlace | None:
        """Store what was told. Returns a session if another connection is wanted."""
        events = [frame for frame in frames if frame.op == DISPATCH]
        if events:
            await intake.take(events)
            if intake.is_ours:
                self.trouble = None
        for frame in frames:
            if frame.op == RECONNECT:
                return intake.place
            if frame.op == INVALID_SESSION:
                may_resume = bytes(frame.content).strip() == b"true"
                log.info("discord_session_over", channel=self.options.name, resume=may_resume)
                return intake.place if may_resume else SessionPlace()
        return None

    def _after(self, closed: GatewayClosed, intake: EventIntake) -> SessionPlace:
        if closed.code in UNUSABLE:
            raise ChannelUnusable(f"{self.options.name}: {UNUSABLE[closed.code]}")
        log.info("discord_closed", channel=self.options.name, code=closed.code, why=str(closed))
        if not intake.is_ours and closed.code not in BEGIN_ANEW:
            raise closed
        return SessionPlace() if closed.code in BEGIN_ANEW else intake.place
