"""A home in which strangers were given codes."""

from collections.abc import Sequence
from pathlib import Path

from koboshi.clock import SystemClock
from koboshi.domain.ids import ChannelName
from koboshi.domain.inbox import Words
from koboshi.domain.people import PairingLimits
from koboshi.domain.recovery import BootConfig, Policy
from koboshi.domain.route import Route
from koboshi.ports.channel import Inbound
from koboshi.ports.store import Arrival
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores.sqlite.store import StoreOptions, open_store
from tests.harness.backends import nth_code
from tests.harness.homes import respond

CHANNEL = ChannelName("telegram:main")
BIDI = "\u202eeve\x1b[31m\nnobody"


async def strangers_knock(
    home: Path, *people: str, text: str = "let me in", given: Sequence[str] = ()
) -> None:
    codes = iter(given or [nth_code(1), nth_code(2)])
    store = await open_store(
        home,
        world=BootConfig(policy=Policy(), channels={CHANNEL: True}, is_allowed=lambda *_: False),
        clock=SystemClock(),
        wakeups=LocalWakeups(),
        options=StoreOptions(
            lock_wait_seconds=0, pairing=PairingLimits(), new_code=lambda: next(codes)
        ),
    )
    for person in people:
        inbound = Inbound(
            route=Route(channel=CHANNEL, chat=person),
            external_id=person,
            sender=person,
            sender_name=BIDI,
            is_private=True,
            words=Words(text=text, sent_ms=0),
        )
        await store.inbox.accept(CHANNEL, [Arrival(inbound=inbound)], cursor=None, respond=respond)
    await store.close()
