"""The history of a conversation behind a place: what was said in it and in its threads.

Slack gives the history newest first, so it is paged back to the place and handed on oldest first.
Replies stand in no history but that of their thread. Which threads have news is told by their first
messages as far as these are on the pages, and asked for where a thread is known from before.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import structlog
from anyio import sleep

from koboshi.channels.common.catch_up import HistoryPage
from koboshi.channels.slack.codec import JOINED, SlackReader, is_ts
from koboshi.channels.slack.history import (
    PageRefused,
    SlackHistoryReader,
    TooManyPages,
    micros_of,
)
from koboshi.channels.slack.places import ChatPlace, ChatPlaces, place_in
from koboshi.channels.slack.types import SlackHistoryPage, SlackMessage
from koboshi.ports.channel import Inbound

log = structlog.get_logger()

OVERLAP_US = 60_000_000
"""So far before its place a conversation is read again: Slack may tell of two messages in the other
order. What was stored is a duplicate key."""
AT_ONCE = 100
"""Messages that are stored in one transaction."""

Found = TypeVar("Found")


@dataclass(slots=True, kw_only=True)
class SlackChatHistory:
    history: SlackHistoryReader
    reader: SlackReader
    places: ChatPlaces
    since: int = 0
    """Nothing from before is taken; in microseconds."""
    _rest: dict[str, list[SlackMessage]] = field(default_factory=dict)
    """What was read of a conversation and is not handed on yet, oldest first."""

    async def after(self, chat: str, place: str) -> HistoryPage:
        """The next messages behind a place, oldest first. Raises NotReached, NoAnswer."""
        begin = place_in(place)
        if begin is None:
            return HistoryPage(messages=(), place=place, is_last=True)
        rest = self._rest.pop(chat, None)
        is_fresh = rest is None
        if rest is None:
            try:
                rest = await self._read(chat, begin)
            except PageRefused as refused:
                log.warning("history_refused", chat=chat, why=str(refused))
                return HistoryPage(messages=(), place=place, is_last=True)
        taken, left = rest[:AT_ONCE], rest[AT_ONCE:]
        if left:
            self._rest[chat] = left
        # What was let go meanwhile is on no page that was read before.
        is_last = is_fresh and not left
        return self._page(chat, begin, taken, is_last=is_last)

    def _page(
        self, chat: str, begin: ChatPlace, taken: list[SlackMessage], *, is_last: bool
    ) -> HistoryPage:
        messages: list[Inbound] = []
        self.places.load(chat, begin.token)
        moved = begin
        for message in taken:
            inbound = self.reader.message(message, chat)
            is_for_us = inbound is not None and inbound.is_addressed
            thread = inbound.route.thread if inbound is not None and is_for_us else ""
            moved = self.places.move(chat, message.ts, thread)
            if inbound is not None:
                messages.append(inbound)
        return HistoryPage(messages=messages, place=moved.token, is_last=is_last)

    async def _read(self, chat: str, begin: ChatPlace) -> list[SlackMessage]:
        floor = max(micros_of(begin.newest) - OVERLAP_US, self.since)
        found: dict[str, SlackMessage] = {}
        threads = dict.fromkeys(begin.threads)
        cursor = ""
        while True:
            page = await self._patiently(partial(self.history.page, chat, cursor=cursor))
            is_joined = self._look_at(page, floor, found, threads)
            cursor = page.next_cursor
            oldest = min((micros_of(m.ts) for m in page.messages if is_ts(m.ts)), default=0)
            if is_joined or not cursor or oldest <= floor:
                break
        for thread in threads:
            await self._read_thread(chat, thread, floor, found)
        return sorted(found.values(), key=lambda message: micros_of(message.ts))

    def _look_at(
        self,
        page: SlackHistoryPage,
        floor: int,
        found: dict[str, SlackMessage],
        threads: dict[str, None],
    ) -> bool:
        """Take what is new on a page. Returns whether we came into the conversation on it: what was
        said before was not said to us."""
        for message in page.messages:
            if not is_ts(message.ts):
                continue
            if message.subtype in JOINED and message.user == self.reader.me:
                return True
            if is_ts(message.latest_reply) and micros_of(message.latest_reply) > floor:
                threads[message.ts] = None
            elif message.latest_reply:
                threads.pop(message.ts, None)
            if micros_of(message.ts) > floor:
                found[message.ts] = message
        return False

    async def _read_thread(
        self, chat: str, thread: str, floor: int, found: dict[str, SlackMessage]
    ) -> None:
        oldest, cursor = f"{max(floor, 0) // 1_000_000}.{max(floor, 0) % 1_000_000:06d}", ""
        while True:
            try:
                page = await self._patiently(
                    partial(self.history.page, chat, thread, oldest=oldest, cursor=cursor)
                )
            except PageRefused:
                return  # its first message is gone, and the thread with it
            for message in page.messages:
                if is_ts(message.ts) and micros_of(message.ts) > floor:
                    found[message.ts] = message
            cursor = page.next_cursor
            if not cursor:
                return

    async def _patiently(self, ask: Callable[[], Awaitable[Found]]) -> Found:
        """What is asked for, as soon as Slack gives it."""
        while True:
            try:
                return await ask()
            except TooManyPages as limited:
                await sleep(limited.wait_ms / 1000)
