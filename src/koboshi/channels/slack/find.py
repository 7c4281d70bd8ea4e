"""Looking for a send of unknown outcome: our key stands in the metadata of the message.

The history is paged from the newest back to before the send. A page that the platform does not give
now ends the look as unknown; the next one goes on where this one stopped, so that a look comes to
its end also where one page a minute is given. Nothing that was sent after the look began can be it.
"""

from dataclasses import dataclass, field

from koboshi.channels.slack.blocks import METADATA
from koboshi.channels.slack.codec import is_ts
from koboshi.channels.slack.history import SlackHistoryReader, micros_of, ts_of
from koboshi.channels.slack.types import SlackMessage
from koboshi.domain.outbox import Delivery, Later, Near, Sent

LOOKS_MAX = 1_000
"""Looks that are not at their end; one that is forgotten begins anew."""
MARGIN_S = 600
"""How far before the delivery was owed a look goes where nothing is known of the chat."""


@dataclass(slots=True, kw_only=True)
class Finder:
    history: SlackHistoryReader
    me: str = ""
    """The app's own user id, once it is known."""
    _begun: dict[int, str] = field(default_factory=dict)
    """Up to which time stamp a look has come, by delivery: backwards in a conversation, forwards in
    a thread."""

    async def look(self, delivery: Delivery, near: Near, now_s: float) -> Sent | Later | None:
        """Sent if it is there, Later if it certainly is not, None if that cannot be known. Raises
        NotReached, NoAnswer, TooManyPages."""
        if delivery.file is not None and not near.is_alone:
            return None
        if not delivery.send_key:
            return None
        route = delivery.route
        oldest, latest = _oldest(delivery, near, now_s), ""
        begun = self._begun.get(delivery.delivery_id, "")
        if begun:
            oldest, latest = (begun, "") if route.thread else (oldest, begun)
        while True:
            page = await self.history.page(
                route.chat, route.thread, oldest=oldest, latest=latest, with_metadata=True
            )
            for message in page.messages:
                if self._is_it(message, delivery, near):
                    self._begun.pop(delivery.delivery_id, None)
                    return Sent(platform_id=message.ts)
            stamps = [m.ts for m in page.messages if is_ts(m.ts) and m.ts != route.thread]
            if not page.has_more or not stamps:
                self._begun.pop(delivery.delivery_id, None)
                return Later(wait_ms=0)
            if route.thread:
                oldest = max(stamps, key=micros_of)
            else:
                latest = min(stamps, key=micros_of)
            self._remember(delivery.delivery_id, oldest if route.thread else latest)

    def _is_it(self, message: SlackMessage, delivery: Delivery, near: Near) -> bool:
        metadata = message.metadata
        if metadata is not None and metadata.event_type == METADATA:
            return metadata.event_payload.get("key") == delivery.send_key
        if delivery.file is None or not message.bot_id or message.ts in near.known:
            return False
        # Files carry no metadata. This one is the only send to the chat that is looked for, and
        # what is known of others is excluded.
        named = {file.name for file in message.attached} - {None}
        known = {file.id for file in message.attached} & {*near.known, *near.before}
        is_own = not self.me or message.user == self.me
        return is_own and delivery.file.name in named and not known

    def _remember(self, delivery_id: int, latest: str) -> None:
        while len(self._begun) >= LOOKS_MAX:
            del self._begun[next(iter(self._begun))]
        self._begun[delivery_id] = latest


def _oldest(delivery: Delivery, near: Near, now_s: float) -> str:
    """From where on it may stand: behind what was there before it, by the platform's own stamps,
    else a while before it was owed, by the platform's clock."""
    stamps = [ts for ts in near.before if is_ts(ts)]
    if stamps:
        return max(stamps, key=micros_of)
    return ts_of(max(0.0, now_s - delivery.age_ms / 1000 - MARGIN_S))
