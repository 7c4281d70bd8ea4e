"""Catching up with chats whose messages a platform does not bring again by itself.

Theory of operation. Where a platform keeps the history of a chat, but no queue for us, the place up
to which a chat was read is its *watermark*. It is stored in the transaction of the messages before
it. After a gap, each chat is read from its watermark to its end, page by page, oldest first. So at
every moment:

* A message behind the watermark is stored. One before us is still in the history. A crash moves
  none of them: the next start reads from the stored watermark, and what comes twice is a duplicate
  key.
* While a chat is behind, what the platform brings of it live is held and not stored: it would
  overtake older words, and its watermark would leave them out. It is stored when the chat is read
  to its end. If too much is held it is let go, and the history is asked once more instead.
* The *cursor* of the channel stands for everything before it. So it is stored only when no chat is
  behind. A crash during a catch-up has the old cursor, and what was held comes again.
* A chat without a watermark is new to us: nothing from before is read. Its channel sets the first
  one.

Chats are read side by side, a few at once, each page after a pause that the platform asks for: one
with a long history does not hold up the others.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from anyio import create_task_group

from koboshi.ports.channel import NO_WATERMARKS, Accept, Inbound, Receipt
from koboshi.ports.clock import Clock

CHATS_AT_ONCE = 4
HELD_MAX = 200
"""Live messages of one chat that are held. More are read from the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """Messages of a chat behind a place, oldest first."""

    messages: Sequence[Inbound]
    place: str
    """The watermark of the chat once these are stored."""
    is_last: bool
    """The platform has nothing newer."""


class History(Protocol):
    async def after(self, chat: str, place: str) -> HistoryPage:
        """The next page behind a place. Raises where the platform cannot be had; the catch-up
        begins again at the stored watermarks then."""
        ...


@dataclass(slots=True)
class Gap:
    """One chat that is behind."""

    place: str
    held: list[tuple[Inbound, str]] = field(default_factory=list)
    is_asked_again: bool = False
    """What came live was let go: the history has to be read once more."""

    def hold(self, inbound: Inbound, watermark: str) -> None:
        if self.is_asked_again:
            return
        self.held.append((inbound, watermark))
        if len(self.held) > HELD_MAX:
            self.let_go()

    def let_go(self) -> None:
        """The history will have what came live, and is read once more."""
        self.held.clear()
        self.is_asked_again = True

    def ask(self) -> None:
        """The history is asked now: it will have what was let go before."""
        self.is_asked_again = False

    def is_closed_by(self, page: HistoryPage) -> bool:
        """Whether the chat is read to its end, but for what is held."""
        return page.is_last and not self.is_asked_again


async def no_pause() -> None:
    """The platform asks for none."""


@dataclass(slots=True, kw_only=True)
class CatchUp:
    """The chats of one connection that are behind. It is empty where all are read to their ends."""

    history: History
    accept: Accept
    clock: Clock
    pace: Callable[[], Awaitable[None]] = no_pause
    """Waits until the platform may be asked for a page."""
    since_ms: int | None = None
    _gaps: dict[str, Gap] = field(default_factory=dict)
    _waiting: list[str] = field(default_factory=list)

    @property
    def chats_behind(self) -> int:
        return len(self._gaps)

    def is_behind(self, chat: str) -> bool:
        """Whether live messages of a chat are held now."""
        return chat in self._gaps

    def hasten(self, chat: str) -> None:
        """Read a chat next, if it still waits to be read: a person is there."""
        if chat in self._waiting:
            self._waiting.remove(chat)
            self._waiting.insert(0, chat)

    def add(self, watermarks: Mapping[str, str]) -> None:
        """These chats are behind, each from its watermark on. One that is being read is asked once
        more: the page on its way may be older than the reason to look."""
        for chat, place in watermarks.items():
            if chat in self._gaps:
                self._gaps[chat].let_go()
            else:
                self._gaps[chat] = Gap(place)
                self._waiting.append(chat)
        if self._gaps and self.since_ms is None:
            self.since_ms = self.clock.now_ms()

    async def take(
        self,
        arrived: Sequence[tuple[Inbound, str]],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        """Store what came live, each with the watermark of its chat behind it (empty for none), or
        hold it while its chat is behind. The cursor is stored only if no chat is."""
        free: list[Inbound] = []
        marks: dict[str, str] = {
            chat: place for chat, place in watermarks.items() if chat not in self._gaps
        }
        for inbound, watermark in arrived:
            gap = self._gaps.get(inbound.route.chat)
            if gap is not None:
                gap.hold(inbound, watermark)
                continue
            free.append(inbound)
            if watermark:
                marks[inbound.route.chat] = watermark
        stored_cursor = None if self._gaps else cursor
        if not free and not marks and stored_cursor is None:
            return ()
        return await self.accept(free, stored_cursor, marks)

    async def run(self) -> None:
        """Read every chat that is behind to its end. More may be added meanwhile."""
        async with create_task_group() as tasks:
            for _ in range(CHATS_AT_ONCE):
                tasks.start_soon(self._keep_reading)
        self.since_ms = self.since_ms if self._gaps else None

    async def _keep_reading(self) -> None:
        while self._waiting:
            await self._read(self._waiting.pop(0))

    async def _read(self, chat: str) -> None:
        gap = self._gaps[chat]
        while True:
            await self.pace()
            gap.ask()
            page = await self.history.after(chat, gap.place)
            await self.accept(page.messages, None, {chat: page.place})
            gap.place = page.place
            while gap.is_closed_by(page):
                held, gap.held = gap.held, []
                if not held:
                    # No await since the last look at it: what comes from now on is stored at once.
                    del self._gaps[chat]
                    return
                newest = next((mark for _, mark in reversed(held) if mark), "")
                marks = {chat: newest} if newest else NO_WATERMARKS
                await self.accept([inbound for inbound, _ in held], None, marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class OlderPage:
    """A page of a history that can only be read backwards: newest first."""

    messages: Sequence[Inbound]
    before: str | None
    """Where the next older page begins; None if there is none."""
    reaches: bool
    """It reaches the place that is looked for, or goes beyond it. What it holds is behind that."""


async def page_back(
    older: Callable[[str | None], Awaitable[OlderPage]], pages_max: int
) -> tuple[Sequence[Inbound], bool]:
    """Read a history backwards to a place. Returns what is behind that, oldest first, and whether
    the place was reached within `pages_max` pages."""
    found: list[Inbound] = []
    before: str | None = None
    for _ in range(pages_max):
        page = await older(before)
        found.extend(page.messages)
        before = page.before
        if page.reaches or before is None:
            return found[::-1], True
    return found[::-1], False
