"""Whether a message of unknown outcome arrived: looked for in the history of its channel.

The nonce alone settles a repeat within some minutes. Behind that, the history does: a message of
ours behind those that were there before, with our nonce where the platform tells it, else with our
words. An empty history proves nothing by itself, because a bot without the permission to read it
gets an empty one, too (`message.mdx`, Get Channel Messages); so it must show what was there before.
"""

from collections.abc import Sequence

from koboshi.channels.discord.catching_up import GONE, messages_in
from koboshi.channels.discord.client import TOO_MANY, DiscordApi
from koboshi.channels.discord.messages import channel_of, text_of
from koboshi.channels.discord.places import id_at, is_id
from koboshi.channels.discord.types import ChannelMessage
from koboshi.domain.durations import wait_ms
from koboshi.domain.outbox import Delivery, Later, Near, SendOutcome, Sent, Unsure

PAGE = 100
PAGES_MAX = 10
CLOCKS_APART_MS = 10 * 60_000
"""How far our clock may be ahead of the platform's."""


async def look_for(api: DiscordApi, me: str, delivery: Delivery, near: Near) -> SendOutcome | None:
    """Sent if it is there, Later if it certainly is not, None if that cannot be told. Raises
    NotReached or NoAnswer."""
    before = [int(each) for each in near.before if is_id(each)]
    after = max(before, default=id_at(delivery.created_ms - CLOCKS_APART_MS))
    channel_id = channel_of(delivery.route)
    for _ in range(PAGES_MAX):
        page = await _messages(api, channel_id, f"after={after}&limit={PAGE}")
        if not isinstance(page, list):
            return page
        for message in page:
            if _is_it(message, me, delivery, near):
                return Sent(platform_id=message.id)
        if len(page) < PAGE:
            seen = page or await _messages(api, channel_id, "limit=1")
            return Later(wait_ms=0, reason="it is not there") if seen else None
        after = max(int(each.id) for each in page)
    return None


async def _messages(
    api: DiscordApi, channel_id: str, query: str
) -> list[ChannelMessage] | Unsure | None:
    path = f"/channels/{channel_id}/messages?{query}"
    answer = await api.call("GET", path, kind="getMessages", place=channel_id)
    if answer.status == TOO_MANY:
        refusal = answer.refusal
        return Unsure(reason=refusal.message, wait_ms=wait_ms(refusal.retry_after), was_sent=False)
    return None if answer.status in GONE else messages_in(answer)


def _is_it(message: ChannelMessage, me: str, delivery: Delivery, near: Near) -> bool:
    if message.author is None or message.author.id != me:
        return False
    if message.nonce is not None:
        return str(message.nonce) == delivery.send_key
    if message.id in near.known or not near.is_alone:
        return False
    names = tuple(file.filename for file in message.attachments)
    wanted = (delivery.file.name,) if delivery.file is not None else ()
    return _words(message.content) == _words(text_of(delivery)) and len(names) == len(wanted)


def _words(text: str) -> Sequence[str]:
    """The platform may change spaces."""
    return text.split()
