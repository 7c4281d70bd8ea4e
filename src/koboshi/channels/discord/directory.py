"""Which channels there are: told by events, asked for where an event does not say."""

from dataclasses import dataclass, field

from anyio import sleep

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.discord.client import TOO_MANY, DiscordApi
from koboshi.channels.discord.places import PRIVATE, THREADS, KnownPlaces
from koboshi.channels.discord.types import ChannelMessage, DiscordPlace

GONE = frozenset({403, 404})
PAUSE_SECONDS = 0.1
"""At least, where the platform asks us to slow down."""


@dataclass(slots=True, kw_only=True)
class Directory:
    api: DiscordApi
    places: KnownPlaces = field(default_factory=KnownPlaces)

    async def place_of(
        self, channel_id: str, kind: int | None = None, guild_id: str | None = None
    ) -> DiscordPlace:
        """The channel of a message. A thread is in another channel, which is asked for once.
        Raises NotReached or NoAnswer."""
        found = self.places.get(channel_id)
        if found is not None:
            return found
        if kind == PRIVATE or (kind is not None and kind not in THREADS):
            found = DiscordPlace(id=channel_id, kind=kind, guild_id=guild_id)
        else:
            found = await self._asked_for(channel_id)
        self.places.learn(found)
        return found

    async def opened(self, person: str) -> DiscordPlace | None:
        """The private channel with a person; None if they cannot be written to."""
        path, asked = "/users/@me/channels", {"recipient_id": person}
        while True:
            answer = await self.api.call("POST", path, asked, kind="createDm")
            if answer.status != TOO_MANY:
                break
            await sleep(max(answer.refusal.retry_after, PAUSE_SECONDS))
        return answer.read(DiscordPlace) if answer.is_good else None

    async def message_of(self, told: ChannelMessage) -> ChannelMessage:
        """A message as it is now; as it was told if it is gone."""
        path = f"/channels/{told.channel_id}/messages/{told.id}"
        answer = await self.api.call("GET", path, kind="getMessage", place=told.channel_id)
        if answer.is_good:
            return answer.read(ChannelMessage)
        if answer.status in GONE:
            return told
        raise NoAnswer(answer.refusal.message)

    async def _asked_for(self, channel_id: str) -> DiscordPlace:
        path = f"/channels/{channel_id}"
        answer = await self.api.call("GET", path, kind="getChannel", place=channel_id)
        if answer.is_good:
            return answer.read(DiscordPlace)
        if answer.status in GONE:
            return DiscordPlace(id=channel_id)
        raise NoAnswer(answer.refusal.message)
