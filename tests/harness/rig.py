"""A gateway on a platform made of files, as a program that can be killed: `python -m
tests.harness.rig HOME`, with the platform in the folder `<home>.platform` beside it.

It has what the web channel does not: tools of every effect, sends that a platform cannot tell
apart, and a feed that is read by a cursor. Everything that leaves the gateway is written down
before it has any effect, and every acknowledgement after it was given, so that a test can compare
what happened with what is stored.
"""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from anyio import sleep

from koboshi.clock import SystemClock
from koboshi.domain.ids import ChannelName, Seq
from koboshi.domain.inbox import Words
from koboshi.domain.outage import Patience
from koboshi.domain.outbox import Delivery, Near, SendOutcome, Sent
from koboshi.domain.recovery import BootConfig, Policy
from koboshi.domain.route import Route
from koboshi.models.scripted import ScriptedModel
from koboshi.ports.channel import Abilities, Accept, Inbound
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores import faults
from koboshi.stores.sqlite.store import StoreOptions, open_store
from tests.harness import toolbox
from tests.harness.compose import Bounds, compose
from tests.harness.platform import CHANNEL, FINDING, IDEMPOTENT, NON_IDEMPOTENT
from tests.harness.quiet_channel import QuietChannel

Line: TypeAlias = dict[str, Any]

ABILITIES = {"plain": NON_IDEMPOTENT, "idempotent": IDEMPOTENT, "finding": FINDING}
KIND = "RIG_PLATFORM"
READ_EVERY_S = 0.01


@dataclass(frozen=True, slots=True)
class FilePlatform:
    """Files with a line for each thing that happened."""

    folder: Path

    def lines(self, name: str) -> list[Line]:
        path = self.folder / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def write(self, name: str, line: Line) -> None:
        self.folder.mkdir(exist_ok=True)
        with (self.folder / name).open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")


class FileChannel(QuietChannel):
    """The feed is read from the cursor on; what was not acknowledged comes again."""

    def __init__(self, platform: FilePlatform, abilities: Abilities) -> None:
        self._platform = platform
        self._abilities = abilities

    @property
    def name(self) -> ChannelName:
        return CHANNEL

    @property
    def abilities(self) -> Abilities:
        return self._abilities

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        place = int(cursor or 0)
        self._platform.write("acknowledged", {"place": place})
        while True:
            batch = self._platform.lines("feed")[place : place + 2]
            if batch:
                place += len(batch)
                await accept([_inbound(line) for line in batch], str(place))
                self._platform.write("acknowledged", {"place": place})
            await sleep(READ_EVERY_S)

    async def send(self, delivery: Delivery) -> SendOutcome:
        self._platform.write(
            "sent",
            {
                "delivery": delivery.delivery_id,
                "chat": delivery.route.chat,
                "text": delivery.text,
                "labelled": delivery.may_be_duplicate,
                "question": delivery.question,
            },
        )
        return Sent(platform_id=str(delivery.delivery_id))

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        sent = [line["delivery"] for line in self._platform.lines("sent")]
        return Sent(platform_id="found") if delivery.delivery_id in sent else None


def _inbound(line: Line) -> Inbound:
    question = line.get("question")
    return Inbound(
        route=Route(channel=CHANNEL, chat=line["chat"]),
        external_id=line["id"],
        sender="ann",
        words=Words(
            text=line.get("text", ""),
            sent_ms=0,
            question=None if question is None else Seq(question),
            choice_id=line.get("choice"),
        ),
    )


async def serve(home: Path) -> None:
    clock, wakeups = SystemClock(), LocalWakeups()
    world = BootConfig(
        policy=Policy(),
        channels={CHANNEL: True},
        is_allowed=lambda *_: True,
        patience=Patience(total_ms=1_000),
    )
    options = StoreOptions(crash_at=os.environ.get(faults.VARIABLE, ""))
    store = await open_store(home, world=world, clock=clock, wakeups=wakeups, options=options)
    worker = await store.workers.start("rig", os.getpid(), "birth", "0")
    platform = FilePlatform(platform_folder(home))
    effects = toolbox.World(write_down=lambda what: platform.write("ran", {"what": what}))
    gateway = compose(
        home,
        store=store,
        worker_id=worker.worker_id,
        clock=clock,
        wakeups=wakeups,
        channels=[FileChannel(platform, ABILITIES[os.environ.get(KIND, "plain")])],
        model=ScriptedModel(),
        tools=effects.tools(),
        bounds=Bounds(question_age_ms_max=300, rescue_seconds=0.3),
    )
    await gateway.run()


def platform_folder(home: Path) -> Path:
    return home.with_name(f"{home.name}.platform")


if __name__ == "__main__":
    anyio.run(serve, Path(sys.argv[1]))
