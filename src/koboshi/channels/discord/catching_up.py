"""What was written while no session of the gateway was ours, from the history of each channel.

Theory of operation. A channel is *behind* while its history may hold messages that are not stored.
Pages of the history are stored in order, each with the watermark of its newest message, from the
watermark of the channel on. An event about a message of a channel that is behind is not stored: it
only says that there is more. The channel is behind no longer after a page that was asked for behind
the last such event and brought nothing. So the messages of a channel are stored in their order, by
whichever way they come, and a crash at any moment leaves a watermark with nothing missing before
it. What comes both ways is a duplicate key.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import structlog
from anyio import CapacityLimiter, sleep

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.discord.client import TOO_MANY, ApiAnswer, DiscordApi
from koboshi.channels.discord.places import is_id
from koboshi.channels.discord.types import ChannelMessage, DiscordPlace, OnlyId
from koboshi.channels.discord.watermarks import ReadMarks
from koboshi.ports.clock import Clock

log = structlog.get_logger()

PAGE = 100
AT_ONCE = 4
"""Histories that are read side by side."""
GONE = frozenset({403, 404})
NOT_OF_THIS_KIND = 50024
"""The code of a refusal: this kind of channel holds no messages."""
UNREADABLE = -1
"""The type of a message of which only the id can be told."""

StoreHistory = Callable[[Sequence[ChannelMessage], DiscordPlace, dict[str, str]], Awaitable[None]]
"""Store messages of one channel and its watermark, in one transaction."""


@dataclass(slots=True, kw_only=True)
class ChannelHistories:
    """The channels that are behind, and the work of reading their histories."""

    api: DiscordApi
    marks: ReadMarks
    store: StoreHistory
    clock: Clock
    since_ms: int | None = None
    """Since when channels are behind; None if none are."""
    _behind: dict[str, int] = field(default_factory=dict)
    """How many events told of more in each, since it is behind."""
    _reading: set[str] = field(default_factory=set)
    _at_once: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(AT_ONCE))

    @property
    def behind(self) -> int:
        return len(self._behind)

    @property
    def unread(self) -> list[str]:
        """Channels that are behind and that no one reads yet."""
        return [each for each in self._behind if each not in self._reading]

    def is_behind(self, channel_id: str) -> bool:
        return channel_id in self._behind

    def begin(self, channel_id: str) -> None:
        """From now on the channel is behind, until it is read or settled."""
        if not self._behind:
            self.since_ms = self.clock.now_ms()
        self._behind.setdefault(channel_id, 0)
        if channel_id in self._reading:
            self.tell_of_more(channel_id)  # the page on its way may be older than what is told of

    def tell_of_more(self, channel_id: str) -> None:
        self._behind[channel_id] += 1

    def settle(self, channel_id: str) -> bool:
        """The platform says that there is nothing new. Returns False if an event has told of
        something since, or if the history is being read: then it has to be read on."""
        if channel_id in self._reading or self._behind.get(channel_id):
            return False
        self._end(channel_id)
        return True

    def _end(self, channel_id: str) -> None:
        self._behind.pop(channel_id, None)
        self.since_ms = self.since_ms if self._behind else None

    async def read(self, place: DiscordPlace, after: int, person: str = "") -> None:
        """Read the history of a channel behind an id until it is behind no longer. A private
        channel is kept with its person. Raises NotReached or NoAnswer."""
        self.begin(place.id)
        if place.id in self._reading:
            return
        self._reading.add(place.id)
        async with self._at_once:
            count = await self._read(place, after, person)
        self._reading.discard(place.id)
        self._end(place.id)
        if count:
            log.info("discord_caught_up", place=place.id, messages=count)
        elif int(place.last_message_id or 0) > after:
            # It was deleted, or the bot may not read the history: both look like this.
            log.warning("discord_history_empty", place=place.id)

    async def _read(self, place: DiscordPlace, after: int, person: str) -> int:
        count = 0
        while True:
            events = self._behind[place.id]
            messages = await self._page(place.id, after)
            if messages is None:
                await self.store((), place, {place.id: ""})
                return count
            if not messages and events == self._behind[place.id]:
                if person and place.id not in self.marks.people:
                    token = self.marks.token(place.id, after, person)
                    await self.store((), place, {place.id: token})
                    if events != self._behind[place.id]:
                        continue
                return count
            if messages:
                after = max(int(each.id) for each in messages)
                token = self.marks.token(place.id, after, person)
                await self.store(messages, place, {place.id: token})
                count += len(messages)

    async def _page(self, channel_id: str, after: int) -> list[ChannelMessage] | None:
        """The next messages behind an id, oldest first; None if the channel is not ours to read."""
        path = f"/channels/{channel_id}/messages?after={after}&limit={PAGE}"
        while True:
            answer = await self.api.call("GET", path, kind="getMessages", place=channel_id)
            if answer.status != TOO_MANY:
                break
            await sleep(max(answer.refusal.retry_after, 0.1))
        if answer.status in GONE or answer.refusal.code == NOT_OF_THIS_KIND:
            log.info("discord_history_refused", place=channel_id, why=answer.refusal.message)
            return None
        return sorted(messages_in(answer), key=lambda each: int(each.id))


def messages_in(answer: ApiAnswer) -> list[ChannelMessage]:
    """The messages of a history. One that cannot be read does not keep the others from us: only
    its id is kept. Raises NoAnswer."""
    if not answer.is_good:
        raise NoAnswer(f"the history: {answer.refusal.message}")
    found: list[ChannelMessage] = []
    for raw in answer.read(list[msgspec.Raw]):
        try:
            found.append(msgspec.json.decode(raw, type=ChannelMessage))
        except (msgspec.DecodeError, RecursionError) as error:
            log.warning("discord_message_unreadable", why=str(error))
            try:
                named = msgspec.json.decode(raw, type=OnlyId)
            except (msgspec.DecodeError, RecursionError):
                continue
            found.append(ChannelMessage(id=named.id, channel_id="", kind=UNREADABLE))
    return [each for each in found if is_id(each.id)]
