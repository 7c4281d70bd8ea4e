"""Showing an answer while it grows. Display only: nothing depends on it or waits for it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog
from anyio import create_task_group, move_on_after, sleep

from koboshi.domain.ids import ChannelName, TurnId
from koboshi.domain.route import Route
from koboshi.domain.session import Session
from koboshi.ports.channel import Channel
from koboshi.ports.model import OnText

log = structlog.get_logger()

FIRST_SECONDS = 0.7
"""An answer that comes sooner is not shown as a draft."""
EVERY_SECONDS = 1.0
SHOW_SECONDS_MAX = 5.0


@dataclass(slots=True)
class _Growing:
    pieces: list[str] = field(default_factory=list)
    shown: int = 0

    def grow(self, piece: str) -> None:
        self.pieces.append(piece)

    def news(self) -> str | None:
        """The whole text, if it has grown."""
        if len(self.pieces) == self.shown:
            return None
        self.shown = len(self.pieces)
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    channels: Mapping[ChannelName, Channel]

    @asynccontextmanager
    async def showing(self, session: Session, turn_id: TurnId) -> AsyncIterator[OnText | None]:
        """Show the model's text as it grows; gives None where no person could see it. What a child
        writes is for its parent."""
        route = session.route
        channel = None if session.is_child else self.channels.get(route.channel)
        if channel is None or not channel.abilities.drafts:
            yield None
            return
        growing = _Growing()
        try:
            async with create_task_group() as tasks:
                tasks.start_soon(_keep_showing, channel, route, turn_id, growing)
                yield growing.grow
                tasks.cancel_scope.cancel()
        except ExceptionGroup as group:
            # Showing swallows its own errors, so this error is the model's.
            raise group.exceptions[0] from None


async def _keep_showing(channel: Channel, route: Route, turn_id: TurnId, growing: _Growing) -> None:
    await sleep(FIRST_SECONDS)
    while True:
        words = growing.news()
        if words is not None and words.strip():
            try:
                with move_on_after(SHOW_SECONDS_MAX):
                    await channel.draft(route, turn_id, words)
            except Exception:  # display only: the work goes on without it
                log.warning("draft_failed", exc_info=True)
                return
        await sleep(EVERY_SECONDS)
