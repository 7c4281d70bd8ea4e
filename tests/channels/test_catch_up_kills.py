"""Catch-ups that are killed before and after their commits, with messages that come meanwhile: in
seeded worlds, and with bugs planted that must be found."""

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from anyio import create_task_group, lowlevel

from koboshi.channels.common.catch_up import CatchUp, Gap, HistoryPage
from koboshi.ports.channel import NO_WATERMARKS, Inbound, Receipt
from tests.channels.fakes import FakeClock, FakeGateway
from tests.channels.said import said
from tests.harness.tally import WANTS_ALL, found_by

SEEDS = range(400 if WANTS_ALL else 60)
CHATS = ("a", "b", "c")
PAGE = 3
WINDOW = 5
"""How many events the platform brings again to a connection from an old place."""


class Killed(Exception):
    """The process dies here."""


@dataclass
class Platform:
    """It keeps the history of every chat, and the newest events for those who resume."""

    log: list[tuple[str, int]] = field(default_factory=list)

    def say(self, chat: str) -> None:
        self.log.append((chat, 1 + sum(each == chat for each, _ in self.log)))

    async def after(self, chat: str, place: str) -> HistoryPage:
        newer = [n for each, n in self.log if each == chat and n > int(place)]
        page = newer[:PAGE]
        for _ in range(3):  # the answer is on its way, and people write meanwhile
            await lowlevel.checkpoint()
        messages = [said(chat, number) for number in page]
        place = str(page[-1]) if page else place
        return HistoryPage(messages=messages, place=place, is_last=len(newer) <= PAGE)


@dataclass
class Disk:
    """What is stored; a commit is all or nothing, and kills come before or after one."""

    kill_at: int = 0
    is_before: bool = False
    gateway: FakeGateway = field(default_factory=FakeGateway)
    texts: dict[str, list[str]] = field(default_factory=dict)

    async def accept(
        self,
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        await lowlevel.checkpoint()
        self.kill_at -= 1
        if self.kill_at == 0 and self.is_before:
            raise Killed
        receipts = await self.gateway.accept(batch, cursor, watermarks)
        for each, receipt in zip(batch, receipts, strict=True):
            if not receipt.is_duplicate:
                self.texts.setdefault(each.route.chat, []).append(each.words.text)
        if self.kill_at == 0:
            raise Killed
        return receipts


async def life(platform: Platform, disk: Disk, chance: random.Random, kind: type[CatchUp]) -> None:
    """One connection: resumed if the platform still can, else caught up with; people write on."""
    catch_up = kind(history=platform, accept=disk.accept, clock=FakeClock())
    place = int(disk.gateway.cursor or 0)
    if place < len(platform.log) - WINDOW:
        catch_up.add({chat: disk.gateway.watermarks.get(chat, "0") for chat in CHATS})
        place = len(platform.log)

    async def live(place: int) -> None:
        for _ in range(12):
            if chance.random() < 0.5:
                platform.say(chance.choice(CHATS))
            await lowlevel.checkpoint()
            arrived = [(said(chat, n), str(n)) for chat, n in platform.log[place:]]
            place = len(platform.log)
            await catch_up.take(arrived, str(place))

    async with create_task_group() as tasks:
        tasks.start_soon(live, place)
        tasks.start_soon(catch_up.run)
    await catch_up.take([], str(len(platform.log)))


async def lived_through(seed: int, kind: type[CatchUp] = CatchUp) -> str:
    """What is wrong after some lives; empty if nothing is."""
    chance = random.Random(seed)
    platform, disk = Platform(), Disk()
    for number in range(6):
        for _ in range(chance.randrange(12)):
            platform.say(chance.choice(CHATS))
        is_last = number == 5
        disk.kill_at = 0 if is_last else chance.randrange(1, 8)
        disk.is_before = chance.random() < 0.5
        with suppress(ExceptionGroup, Killed):
            await life(platform, disk, chance, kind)
    for chat in CHATS:
        wanted = [f"{chat}{n}" for each, n in platform.log if each == chat]
        if disk.texts.get(chat, []) != wanted:
            return f"seed {seed}: {disk.texts.get(chat)} instead of {wanted}"
    return ""


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_message_is_stored_once_and_in_order(seed: int) -> None:
    assert not await lived_through(seed)


class _NotHeld(CatchUp):
    """Stores what comes live while its chat is behind."""

    async def take(self, *arguments: object, **named: object) -> tuple[Receipt, ...]:
        gaps, self._gaps = self._gaps, {}
        try:
            return await super().take(*arguments, **named)  # type: ignore[arg-type]
        finally:
            self._gaps = gaps


class _EagerCursor(CatchUp):
    """Stores the cursor while a chat is behind."""

    async def take(
        self,
        arrived: Sequence[tuple[Inbound, str]],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        receipts = await super().take(arrived, None, watermarks)
        await self.accept([], cursor)
        return receipts


class _MarksFirst(CatchUp):
    """Stores how far it will have read before what it reads."""

    async def _read(self, chat: str) -> None:
        place = self._gaps[chat].place
        page = await self.history.after(chat, place)
        await self.accept([], None, {chat: page.place})
        await super()._read(chat)


class _Forgetful(CatchUp):
    """Lets go of what it holds when a chat is read to its end."""

    async def _read(self, chat: str) -> None:
        self._gaps[chat] = _LeakyGap(self._gaps[chat].place)
        await super()._read(chat)


class _LeakyGap(Gap):
    def hold(self, inbound: Inbound, watermark: str) -> None:
        """It is gone."""


PLANTED: dict[str, type[CatchUp]] = {
    "live messages overtake": _NotHeld,
    "the cursor is eager": _EagerCursor,
    "watermarks first": _MarksFirst,
    "held messages are let go": _Forgetful,
}


@pytest.mark.parametrize("bug", PLANTED)
async def test_a_planted_bug_is_found(bug: str) -> None:
    for seed in range(400):
        if wrong := await lived_through(seed, PLANTED[bug]):
            found_by(bug, "catch-up", f"seed {seed}", wrong)
            return
    raise AssertionError(f"{bug} was not found")
