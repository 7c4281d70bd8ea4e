"""The platform of the simulation and the people on it. Both outlive every life of a gateway.

What people write is kept until it was acknowledged, and is brought again after that now and then.
Some batches come out of order. A send may be refused, put off, or break with the words arrived
or lost; then nobody is told which.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

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
from tests.sim.model import PLANNED
from tests.sim.power import History, Power

CHANNEL = ChannelName("fake:main")
ABILITIES = (
    Abilities(threads=True),
    Abilities(threads=True, idempotent_send=True),
    Abilities(threads=True, finds_sent=True),
)
COMMANDS = ("/stop", "/new", "/status", "/stop all", "/retry", "/retry", "/resume", "/drop")
LOOK_SECONDS = 5.0
"""What somebody writes in answer to something is seen after so long at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Something that a person did."""

    at_s: float
    key: str
    chat: str
    text: str
    question: int | None = None
    choice: str | None = None

    @property
    def is_message(self) -> bool:
        return self.question is None and not self.text.startswith("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Words that a person sees."""

    chat: str
    delivery_id: int
    text: str
    is_labelled: bool


@dataclass(slots=True, kw_only=True)
class SimPlatform:
    dice: random.Random
    history: History
    abilities: Abilities
    updates: list[Update]
    acknowledged: set[str] = field(default_factory=set)
    tried: Counter[int] = field(default_factory=Counter)
    """How often each delivery was sent."""
    seen: list[Seen] = field(default_factory=list)
    quiet_until: dict[str, float] = field(default_factory=dict)
    moves: bool = True
    """Whether chats move now and then."""
    moved: dict[str, str] = field(default_factory=dict)
    """Where chats live that have moved."""
    is_calm: bool = False
    """From now on every send arrives, so that everything can come to an end."""

    def due(self, now_s: float) -> list[Update]:
        """What is to be brought now: all that is not acknowledged, and sometimes more."""
        there = [update for update in self.updates if update.at_s <= now_s]
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
        """How long nobody does anything, as far as anybody knows."""
        coming = (update.at_s for update in self.updates if update.at_s > now_s)
        return min(LOOK_SECONDS, max(0.05, min(coming, default=now_s + LOOK_SECONDS) - now_s))

    @property
    def has_more(self) -> bool:
        return any(update.key not in self.acknowledged for update in self.updates)

    def acknowledge(self, batch: Sequence[Update]) -> None:
        for update in batch:
            if update.key not in self.acknowledged:
                self.history.tell(f"platform: {update.key} is acknowledged")
            self.acknowledged.add(update.key)

    def take(self, delivery: Delivery, now_s: float) -> SendOutcome:
        """What becomes of a send that reaches the platform at this moment."""
        chat, throw = delivery.route.chat, self.dice.random()
        if chat in self.moved:
            return Moved(chat=self.moved[chat])
        if now_s < self.quiet_until.get(chat, 0.0) and not self.is_calm:
            return Later(wait_ms=1_000, reason="429")
        if self.is_calm or throw < 0.78:
            self._show(delivery, now_s)
            return Sent(platform_id=f"p{delivery.delivery_id}")
        if throw < 0.86:
            wait_s = self.dice.choice((1, 5, 30))
            self.quiet_until[chat] = now_s + wait_s
            return Later(wait_ms=wait_s * 1_000, reason="429")
        if throw < 0.94:
            self._show(delivery, now_s)
            return Unsure(reason="the connection broke behind the words")
        if throw < 0.985:
            return Unsure(reason="the connection broke before the words")
        if self.moves and throw < 0.993 and chat not in self.moved.values():
            self.moved[chat] = f"{chat}-elsewhere"
            self.history.tell(f"platform: {chat} moves")
            self.history.count("moved chats")
            return Moved(chat=self.moved[chat])
        return Refused(reason="not here")

    def find(self, delivery: Delivery) -> SendOutcome:
        is_here = any(seen.delivery_id == delivery.delivery_id for seen in self.seen)
        return Sent(platform_id=f"p{delivery.delivery_id}") if is_here else Later(wait_ms=0)

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
                chat=delivery.route.chat,
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
        key = f"r{delivery.delivery_id}"
        for again in range(2 if self.dice.random() < 0.15 else 1):
            self.updates.append(
                Update(
                    at_s=now_s + after_s + again,
                    key=f"{key}.{again}",
                    chat=delivery.route.chat,
                    text="" if picks else words,
                    question=delivery.question if picks else None,
                    choice=self.dice.choice(choices) if picks else None,
                )
            )


@dataclass(slots=True, kw_only=True)
class SimChannel(QuietChannel):
    """The connection of one life of a gateway to the platform."""

    platform: SimPlatform
    power: Power
    clock: Clock

    @property
    def name(self) -> ChannelName:
        return CHANNEL

    @property
    def abilities(self) -> Abilities:
        return self.platform.abilities

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        while True:
            batch = self.platform.due(self.clock.monotonic())
            if not batch:
                await sleep(self.platform.quiet_seconds(self.clock.monotonic()))
                continue
            await self.power.takes(0.001, 0.2)
            await accept([self._inbound(update) for update in batch])
            await self.power.takes(0.0, 0.001)
            self.platform.acknowledge(batch)

    async def send(self, delivery: Delivery) -> SendOutcome:
        await self.power.takes(0.0, 0.005)
        self.platform.tried[delivery.delivery_id] += 1
        await self.power.takes(0.005, 1.5)
        outcome = self.platform.take(delivery, self.clock.monotonic())
        await self.power.takes(0.005, 1.5)
        return outcome

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        await self.power.takes(0.005, 0.5)
        return self.platform.find(delivery)

    def _inbound(self, update: Update) -> Inbound:
        chat = self.platform.moved.get(update.chat, update.chat)
        return Inbound(
            route=Route(channel=CHANNEL, chat=chat),
            external_id=update.key,
            sender="ann",
            words=Words(
                text=update.text,
                sent_ms=0,
                anchor=update.key,
                question=None if update.question is None else Seq(update.question),
                choice_id=update.choice,
            ),
        )


def what_people_do(dice: random.Random) -> list[Update]:
    """Messages and commands of some people in a minute or two."""
    chats = [f"chat{number}" for number in range(dice.randint(1, 3))]
    updates = []
    for number in range(dice.randint(3, 9)):
        chat, at_s = dice.choice(chats), dice.uniform(0.0, 60.0)
        text = _words(dice, number)
        updates.append(Update(at_s=at_s, key=f"u{number}", chat=chat, text=text))
    return sorted(updates, key=lambda update: update.at_s)


def last_words(chats: Iterable[str], now_s: float) -> list[Update]:
    """Everybody writes once more, so that what was set aside gives way."""
    return [
        Update(at_s=now_s + 1, key=f"z{number}", chat=chat, text=f"m{90 + number} do")
        for number, chat in enumerate(sorted(chats))
    ]


def _words(dice: random.Random, number: int) -> str:
    throw = dice.random()
    if throw < 0.1:
        return dice.choice(COMMANDS)
    plan = " ".join(dice.choices(PLANNED, k=dice.randint(0, 3)))
    if throw < 0.22:
        plan += " long"
    prefix = "/queue " if throw > 0.95 else ""
    return f"{prefix}m{number} do {plan}".strip()
