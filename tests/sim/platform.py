"""The platform of the simulation and the people on it. Both outlive every life of a gateway.

What people write is kept until it was acknowledged, and is brought again after that now and then.
Some batches come out of order. A send may be refused, put off, or break with the words arrived
or lost; then it is not told which.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from anyio import sleep

from koboshi.domain.ids import ChannelName, Seq
from koboshi.domain.inbox import Words
from koboshi.domain.outbox import (
    Delivery,
    Later,
    Moved,
    Near,
    Refused,
    SendOutcome,
    Sent,
    Unsure,
)
from koboshi.domain.route import Route
from koboshi.ports.channel import Abilities, Accept, Inbound
from koboshi.ports.clock import Clock
from tests.harness.quiet_channel import QuietChannel
from tests.sim.crowd import CHANNEL, GROUP, OTHER, Update
from tests.sim.loop import BEGIN_MS
from tests.sim.plots import Plot
from tests.sim.power import History, Power
from tests.sim.weather import Weather

ABILITIES = (
    Abilities(threads=True),
    Abilities(threads=True, idempotent_send=True),
    Abilities(threads=True, finds_sent=True),
)
LOOK_SECONDS = 5.0
"""What a person writes in answer to something is seen after so long at most."""
HANG_SECONDS = 30.0
"""After so long a channel gives up on a send that does not come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moods:
    """What becomes of a send, as shares of all: it arrives; quiet is wanted; it breaks off behind
    the words; it breaks off before them; the chat moves. The rest is refused for good."""

    arrives: float
    quiet: float
    behind: float
    before: float
    moves: float


COMMON = Moods(arrives=0.78, quiet=0.08, behind=0.08, before=0.045, moves=0.008)
ROUGH = Moods(arrives=0.45, quiet=0.12, behind=0.12, before=0.29, moves=0.01)
CLOCK = Moods(arrives=0.5, quiet=0.3, behind=0.1, before=0.09, moves=0.0)
DOWN = Moods(arrives=0.0, quiet=0.05, behind=0.15, before=0.8, moves=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Words that a person sees."""

    at_s: float
    channel: ChannelName
    chat: str
    thread: str
    delivery_id: int
    text: str
    is_labelled: bool


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One send. What the gateway heard of it is empty where it died over it."""

    delivery_id: int
    channel: ChannelName
    at_s: float
    heard: str = ""
    is_looked_for: bool = False
    """It was looked for, after this attempt."""


@dataclass(slots=True, kw_only=True)
class SimPlatform:
    dice: random.Random
    history: History
    weather: Weather
    abilities: Abilities
    updates: list[Update]
    acknowledged: dict[str, float] = field(default_factory=dict)
    """What was acknowledged, and when that was first done."""
    attempts: list[Attempt] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)
    """Deliveries that it will never take."""
    quiet_until: dict[str, float] = field(default_factory=dict)
    account: str = ""
    """The bot that is known here; empty where there is only one."""
    moves: bool = True
    """Whether chats move now and then."""
    moved: dict[str, str] = field(default_factory=dict)
    """Where chats live that have moved."""

    @property
    def tried(self) -> Counter[int]:
        """How often each delivery was sent."""
        return Counter(attempt.delivery_id for attempt in self.attempts)

    def due(self, channel: ChannelName, now_s: float, offset: int) -> list[Update]:
        """What is to be brought now: all that is not acknowledged, and sometimes more. A bot gets
        what comes behind the number that it names."""
        mine = [
            update
            for update in self.updates
            if (update.channel, update.account) == (channel, self.account)
            and (not self.account or update.number > offset)
        ]
        there = [update for update in mine if update.at_s <= now_s]
        if self.account:
            # Naming a number acknowledges all before it. They come in order of their numbers, and
            # wait for those with a lower number that are still to happen.
            coming = min((each.number for each in mine if each.at_s > now_s), default=inf)
            there = [update for update in there if update.number < coming]
            return sorted(there, key=lambda update: update.number)[: self.dice.randint(1, 3)]
        fresh = [update for update in there if update.key not in self.acknowledged]
        if not fresh:
            return []
        batch = fresh[: self.dice.randint(1, 3)]
        if self.dice.random() < 0.2:
            batch.append(self.dice.choice(there))
        if self.dice.random() < 0.2:
            self.dice.shuffle(batch)
        return batch

    def quiet_seconds(self, now_s: float) -> float:
        """How long no one does anything, as far as any person knows."""
        coming = (update.at_s for update in self.updates if update.at_s > now_s)
        return min(LOOK_SECONDS, max(0.05, min(coming, default=now_s + LOOK_SECONDS) - now_s))

    @property
    def has_more(self) -> bool:
        return any(update.key not in self.acknowledged for update in self.updates)

    def acknowledge(self, batch: Sequence[Update], now_s: float) -> None:
        for update in batch:
            if update.key not in self.acknowledged:
                self.history.tell(f"platform: {update.key} is acknowledged")
                self.acknowledged[update.key] = now_s

    def take(self, delivery: Delivery, now_s: float) -> SendOutcome:
        """What becomes of a send that reaches the platform at this moment."""
        chat, throw, moods = delivery.route.chat, self.dice.random(), self._moods(now_s)
        if chat in self.moved:
            return Moved(chat=self.moved[chat])
        if now_s < self.quiet_until.get(chat, 0.0) and not self.weather.is_calm:
            return Later(wait_ms=1_000, reason="429")
        if self.weather.is_calm or throw < moods.arrives:
            self._show(delivery, now_s)
            return Sent(platform_id=f"p{delivery.delivery_id}")
        throw -= moods.arrives
        if throw < moods.quiet:
            wait_s = self.dice.choice((1, 5, 30))
            self.quiet_until[chat] = now_s + wait_s
            return Later(wait_ms=wait_s * 1_000, reason="429")
        throw -= moods.quiet
        if throw < moods.behind:
            self._show(delivery, now_s)
            return Unsure(reason="the connection broke behind the words")
        if throw < moods.behind + moods.before:
            return Unsure(reason="502 Bad Gateway")
        throw -= moods.behind + moods.before
        if self.moves and throw < moods.moves and chat not in self.moved.values():
            self.moved[chat] = f"{chat}-elsewhere"
            self.history.tell(f"platform: {chat} moves")
            self.history.count("moved chats")
            return Moved(chat=self.moved[chat])
        if moods is DOWN:
            return Unsure(reason="the connection was reset")
        self.refused.add(delivery.delivery_id)
        return Refused(reason="not here")

    def find(self, delivery: Delivery) -> SendOutcome:
        for attempt in self.attempts:
            if attempt.delivery_id == delivery.delivery_id:
                attempt.is_looked_for = True
        is_here = any(seen.delivery_id == delivery.delivery_id for seen in self.seen)
        return Sent(platform_id=f"p{delivery.delivery_id}") if is_here else Later(wait_ms=0)

    def _moods(self, now_s: float) -> Moods:
        if self.weather.is_platform_down(now_s):
            return DOWN
        return {Plot.ROUGH: ROUGH, Plot.CLOCK: CLOCK}.get(self.weather.plot, COMMON)

    def _show(self, delivery: Delivery, now_s: float) -> None:
        is_repeat = any(seen.delivery_id == delivery.delivery_id for seen in self.seen)
        if is_repeat and self.abilities.idempotent_send:
            return
        label = " (labelled)" if delivery.may_be_duplicate else ""
        self.history.tell(
            f"{delivery.route.chat} sees d{delivery.delivery_id}{label}: {delivery.text[:60]!r}"
        )
        self.seen.append(
            Seen(
                at_s=now_s,
                channel=delivery.route.channel,
                chat=delivery.route.chat,
                thread=delivery.route.thread,
                delivery_id=delivery.delivery_id,
                text=delivery.text,
                is_labelled=delivery.may_be_duplicate,
            )
        )
        if delivery.question is not None and not is_repeat:
            self._react(delivery, now_s)

    def _react(self, delivery: Delivery, now_s: float) -> None:
        """The person answers a question: by a button or in words, soon or late or never, and
        sometimes twice."""
        throw = self.dice.random()
        if throw < 0.1:
            return
        after_s = self.dice.uniform(0.2, 20.0) if throw < 0.9 else self.dice.uniform(200.0, 400.0)
        choices = [choice.choice_id for choice in delivery.choices]
        picks = self.dice.random() < 0.6 and bool(choices)
        words = self.dice.choice(("yes", "yes", "no", "tea", "something else"))
        key, route = f"r{delivery.delivery_id}", delivery.route
        for again in range(2 if self.dice.random() < 0.15 else 1):
            self.updates.append(
                Update(
                    at_s=now_s + after_s + again,
                    key=f"{key}.{again}",
                    sender=_reader_of(route.chat),
                    channel=route.channel,
                    chat=route.chat,
                    thread=route.thread,
                    account=self.account,
                    number=self._next_number(),
                    text="" if picks else words,
                    question=delivery.question if picks else None,
                    choice=self.dice.choice(choices) if picks else None,
                )
            )

    def _next_number(self) -> int:
        mine = [update.number for update in self.updates if update.account == self.account]
        return max(mine, default=0) + 1 if self.account else 0


def _reader_of(chat: str) -> str:
    """Who reads along in a chat: its own person, or the first of a group."""
    return chat.removeprefix("chat-").partition("-")[0] if chat.startswith("chat-") else "ann"


@dataclass(slots=True, kw_only=True)
class SimChannel(QuietChannel):
    """The connection of one life of a gateway to the platform."""

    platform: SimPlatform
    power: Power
    clock: Clock
    name: ChannelName = CHANNEL

    @property
    def abilities(self) -> Abilities:
        return self.platform.abilities

    @property
    def account(self) -> str:
        return self.platform.account

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        offset = int(cursor or 0)
        if self.account:
            await accept([])
        while True:
            if self.platform.weather.is_platform_down(self.clock.monotonic()):
                await self.power.takes(0.05, 1.0)
                raise ConnectionError("502 Bad Gateway")
            batch = self.platform.due(self.name, self.clock.monotonic(), offset)
            if not batch:
                await sleep(self.platform.quiet_seconds(self.clock.monotonic()))
                continue
            await self.power.takes(0.001, 0.2)
            offset = max([offset, *(update.number for update in batch)])
            await accept([self._inbound(update) for update in batch], str(offset))
            await self.power.takes(0.0, 0.001)
            self.platform.acknowledge(batch, self.clock.monotonic())

    async def send(self, delivery: Delivery) -> SendOutcome:
        await self.power.takes(0.0, 0.005)
        attempt = Attempt(
            delivery_id=delivery.delivery_id, channel=self.name, at_s=self.clock.monotonic()
        )
        self.platform.attempts.append(attempt)
        outcome = await self._exchange(delivery)
        attempt.heard = type(outcome).__name__
        return outcome

    async def _exchange(self, delivery: Delivery) -> SendOutcome:
        """There and back. A platform that hangs has taken the words, or has not."""
        weather, now_s = self.platform.weather, self.clock.monotonic()
        if self.name == OTHER and weather.is_hanging(now_s):
            self.power.history.count("sends that hung")
            await self.power.takes(HANG_SECONDS, HANG_SECONDS)
            return Unsure(reason="no answer")
        hangs = weather.plot is Plot.ROUGH and not weather.is_calm
        if hangs and self.power.dice.random() < 0.05:
            self.power.history.count("sends that hung")
            await self.power.takes(HANG_SECONDS, HANG_SECONDS)
            self.platform.take(delivery, now_s)
            return Unsure(reason="no answer")
        await self.power.takes(0.005, 1.5)
        outcome = self.platform.take(delivery, self.clock.monotonic())
        await self.power.takes(0.005, 1.5)
        return outcome

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        await self.power.takes(0.005, 0.5)
        weather = self.platform.weather
        if weather.is_platform_down(self.clock.monotonic()):
            return Unsure(reason="502 Bad Gateway")
        return self.platform.find(delivery)

    def _inbound(self, update: Update) -> Inbound:
        chat = self.platform.moved.get(update.chat, update.chat)
        return Inbound(
            route=Route(channel=self.name, chat=chat, thread=update.thread),
            external_id=update.external_id,
            sender=update.sender,
            is_private=update.chat != GROUP,
            words=Words(
                text=update.text,
                sent_ms=BEGIN_MS + int(update.at_s) * 1_000,
                anchor=update.key,
                question=None if update.question is None else Seq(update.question),
                choice_id=update.choice,
            ),
        )
