"""A platform that people write on, in memory, and the channel that connects it to a gateway.

The platform outlives the gateway: what it was sent stays sent.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from anyio import Event, sleep_forever
from anyio.lowlevel import checkpoint

from koboshi.domain import phrases
from koboshi.domain.ids import ChannelName, Seq
from koboshi.domain.inbox import Words
from koboshi.domain.outbox import Delivery, Near, SendOutcome, Sent, Unsure
from koboshi.domain.route import Route
from koboshi.ports.channel import Abilities, Accept, Inbound, Receipt
from tests.harness.quiet_channel import QuietChannel

CHANNEL = ChannelName("fake:main")
NON_IDEMPOTENT = Abilities(threads=True)
IDEMPOTENT = Abilities(threads=True, idempotent_send=True)
FINDING = Abilities(threads=True, finds_sent=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a person sees: words in a place, with the label that says they may be a duplicate."""

    route: Route
    delivery_id: int
    text: str
    is_labelled: bool
    question: int | None
    choices: tuple[str, ...]


@dataclass(slots=True)
class Platform:
    """What was tried and what people see. `outcomes` decides what becomes of each try: it returns
    the outcome and whether the words arrived."""

    abilities: Abilities = NON_IDEMPOTENT
    tried: list[Delivery] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    outcomes: Callable[[Delivery], tuple[SendOutcome, bool] | None] = lambda _: None
    """None means: as usual, it arrives."""
    found: Callable[[Delivery], SendOutcome | None] = lambda _: None
    gates: dict[str, Event] = field(default_factory=dict)
    """Sends to these chats do not return before the event is set."""
    sending: dict[str, int] = field(default_factory=dict)
    sending_at_once: dict[str, int] = field(default_factory=dict)
    """The most sends under way at the same time, by chat."""
    received: dict[str, Inbound] = field(default_factory=dict)
    typed: list[Route] = field(default_factory=list)
    """Where typing was shown."""
    edited: list[tuple[str, str]] = field(default_factory=list)
    """Which message was given which words."""
    on_show: Callable[[], Awaitable[None]] = checkpoint
    """What happens whenever something is only shown."""

    def texts(self, chat: str, thread: str = "") -> list[str]:
        """What people see in a place, in order."""
        return [
            each.text
            for each in self.shown
            if (each.route.chat, each.route.thread) == (chat, thread)
        ]

    async def on_typing(self, route: Route) -> None:
        self.typed.append(route)
        await self.on_show()

    async def on_edit(self, platform_id: str, text: str) -> None:
        self.edited.append((platform_id, text))
        await self.on_show()

    async def deliver(self, delivery: Delivery) -> SendOutcome:
        chat = delivery.route.chat
        self.tried.append(delivery)
        under_way = self.sending[chat] = self.sending.get(chat, 0) + 1
        self.sending_at_once[chat] = max(self.sending_at_once.get(chat, 0), under_way)
        try:
            return await self._deliver(delivery)
        finally:
            self.sending[chat] -= 1

    async def _deliver(self, delivery: Delivery) -> SendOutcome:
        decided = self.outcomes(delivery)
        arrived = Sent(platform_id=f"p{len(self.tried)}")
        outcome, is_shown = decided if decided is not None else (arrived, True)
        if is_shown and not self._is_repeat(delivery):
            self.shown.append(_shown(delivery))
        gate = self.gates.get(delivery.route.chat)
        if gate is not None:
            await gate.wait()
        return outcome

    def _is_repeat(self, delivery: Delivery) -> bool:
        seen = any(each.delivery_id == delivery.delivery_id for each in self.shown)
        return self.abilities.idempotent_send and seen


class FakeChannel(QuietChannel):
    """The connection of one life of a gateway to the platform."""

    def __init__(self, platform: Platform, name: ChannelName = CHANNEL) -> None:
        self._platform = platform
        self._name = name
        self._accept: Accept | None = None
        self.near_of: dict[int, Near] = {}
        """What was known of the chat when a delivery was last looked for."""
        self._is_receiving = Event()

    @property
    def name(self) -> ChannelName:
        return self._name

    @property
    def abilities(self) -> Abilities:
        return self._platform.abilities

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        self._accept = accept
        self._is_receiving.set()
        await sleep_forever()

    async def send(self, delivery: Delivery) -> SendOutcome:
        return await self._platform.deliver(delivery)

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        self.near_of[delivery.delivery_id] = near
        return self._platform.found(delivery)

    async def typing(self, route: Route) -> None:
        await self._platform.on_typing(route)

    async def edit(self, route: Route, platform_id: str, text: str) -> None:
        await self._platform.on_edit(platform_id, text)

    async def bring(
        self,
        chat: str,
        text: str,
        key: str,
        *,
        thread: str = "",
        sender: str = "ann",
        question: int | None = None,
        choice: str | None = None,
        is_private: bool = False,
    ) -> Receipt:
        """A person writes. Returns once it is stored."""
        await self._is_receiving.wait()
        assert self._accept is not None
        inbound = Inbound(
            route=Route(channel=self._name, chat=chat, thread=thread),
            external_id=key,
            sender=sender,
            is_private=is_private,
            words=Words(
                text=text,
                sent_ms=0,
                anchor=key,
                question=None if question is None else Seq(question),
                choice_id=choice,
            ),
        )
        (receipt,) = await self._accept([inbound])
        return receipt


def arrived_unseen(_: Delivery) -> tuple[SendOutcome, bool]:
    """The connection broke after the send: the words arrived, and we do not know."""
    return Unsure(reason="reset"), True


def in_turn(
    *outcomes: tuple[SendOutcome, bool] | None,
) -> Callable[[Delivery], tuple[SendOutcome, bool] | None]:
    """These outcomes for the first tries; as usual after that."""
    left = list(outcomes)
    return lambda _: left.pop(0) if left else None


def only_in(
    chat: str, outcomes: Callable[[Delivery], tuple[SendOutcome, bool] | None]
) -> Callable[[Delivery], tuple[SendOutcome, bool] | None]:
    """These outcomes in one chat; as usual in the others."""
    return lambda delivery: outcomes(delivery) if delivery.route.chat == chat else None


def _shown(delivery: Delivery) -> Shown:
    label = phrases.DUPLICATE_LABEL if delivery.may_be_duplicate else ""
    return Shown(
        route=delivery.route,
        delivery_id=delivery.delivery_id,
        text=f"{label}{delivery.text}",
        is_labelled=delivery.may_be_duplicate,
        question=delivery.question,
        choices=tuple(choice.choice_id for choice in delivery.choices),
    )
