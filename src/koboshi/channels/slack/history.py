"""Pages of the history of conversations and threads, in turn and as often as Slack allows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec
import structlog
from anyio import Lock, current_time

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.slack.api import SlackApi
from koboshi.channels.slack.outcomes import NOT_LET_IN, NOT_NOW, RATE_LIMITED
from koboshi.channels.slack.types import SlackHistoryPage, SlackMessage, SlackRawPage, SlackReply

log = structlog.get_logger()
_message = msgspec.json.Decoder(SlackMessage)

PAGE_MAX = 200
"""Messages that we ask for at once. Slack gives 15 to apps that are distributed."""


class TooManyPages(Exception):
    """Slack gives no more pages for a while."""

    def __init__(self, wait_ms: int) -> None:
        super().__init__("the platform gives no more pages of the history for a while")
        self.wait_ms = wait_ms


class PageRefused(Exception):
    """Slack does not show the history of this conversation, now or later. Other refusals say
    nothing about it, and it must not count as read."""

    def __init__(self, reply: SlackReply) -> None:
        super().__init__(f"{reply.error} {reply.needed}".strip())
        self.error = reply.error


@dataclass(slots=True, kw_only=True)
class SlackHistoryReader:
    """One page at a time: a look-up and the catching up share what Slack allows."""

    api: SlackApi
    _turn: Lock = field(default_factory=Lock)
    _not_before: float = 0.0

    async def page(
        self,
        chat: str,
        thread: str = "",
        *,
        oldest: str = "",
        latest: str = "",
        cursor: str = "",
        with_metadata: bool = False,
    ) -> SlackHistoryPage:
        """Messages between two time stamps: of a conversation the newest first; of a thread the
        oldest first, its first message before all. Raises TooManyPages, PageRefused, NotReached,
        NoAnswer."""
        asked: dict[str, object] = {"channel": chat, "limit": PAGE_MAX}
        asked |= {"ts": thread} if thread else {}
        asked |= {"oldest": oldest} if oldest else {}
        asked |= {"latest": latest} if latest else {}
        asked |= {"cursor": cursor} if cursor else {}
        asked |= {"include_all_metadata": True} if with_metadata else {}
        method = "conversations.replies" if thread else "conversations.history"
        async with self._turn:
            left = self._not_before - current_time()
            if left > 0:
                raise TooManyPages(int(left * 1000) + 1)
            answered = await self.api.read(method, asked)
            page = answered.read(SlackRawPage)
            if page.error == RATE_LIMITED:
                self._not_before = current_time() + answered.wait_ms / 1000
                raise TooManyPages(answered.wait_ms)
        if not page.ok:
            if page.error in NOT_NOW | NOT_LET_IN:
                raise NoAnswer(f"{method}: {page.error}")
            raise PageRefused(page)
        return SlackHistoryPage(
            messages=tuple(_readable(page.messages)),
            has_more=page.has_more,
            next_cursor=page.next_cursor,
        )


def _readable(messages: Iterable[msgspec.Raw]) -> Iterator[SlackMessage]:
    for raw in messages:
        try:
            yield _message.decode(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            log.warning("message_broken", why=str(error))


def micros_of(ts: str) -> int:
    """A time stamp as a number that can be compared."""
    seconds, _, micros = ts.partition(".")
    return int(seconds or 0) * 1_000_000 + int(micros.ljust(6, "0")[:6])


def ts_of(seconds: float) -> str:
    micros = int(seconds * 1_000_000)
    return f"{micros // 1_000_000}.{micros % 1_000_000:06d}"
