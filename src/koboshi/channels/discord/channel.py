"""The Discord channel: one bot, on its gateway and its REST API."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx2
import structlog
from anyio import Path as AsyncPath

from koboshi.channels.common.account_channel import AccountChannel, usual_abilities
from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.common.pacing import EVERYWHERE, ChatRate, RateLimiter
from koboshi.channels.common.sending import not_looked_for, outcome_of_sending
from koboshi.channels.discord.client import (
    CONNECT_SECONDS,
    NOT_FOUND,
    SEND_SECONDS,
    TOO_MANY,
    ApiAnswer,
    DiscordApi,
)
from koboshi.channels.discord.files import fetch
from koboshi.channels.discord.finding import look_for
from koboshi.channels.discord.messages import (
    QUESTION_UNITS_MAX,
    TEXT_MAX,
    channel_of,
    is_place,
    is_whole,
    message_of,
    parts_of,
)
from koboshi.channels.discord.options import DiscordOptions
from koboshi.channels.discord.outcomes import outcome_of
from koboshi.channels.discord.rate_buckets import RateBuckets
from koboshi.channels.discord.receiving import DiscordReceiving
from koboshi.channels.discord.types import ChannelMessage
from koboshi.domain.files import Attachment
from koboshi.domain.ids import TurnId
from koboshi.domain.outbox import Delivery, Near, Refused, SendOutcome
from koboshi.domain.route import Route
from koboshi.http_pool import HttpPool
from koboshi.ports.channel import Abilities, Watermarks
from koboshi.ports.clock import Clock

log = structlog.get_logger()

CONNECTIONS_MAX = 40
TITLE_MAX = 100
"""Of a thread."""
SHOW_SECONDS = 5.0
CHAT_RATE = ChatRate(per_second=1.0, at_once=5)
"""About what a channel is allowed; its own buckets are told by each answer."""


class DiscordChannel(AccountChannel):
    def __init__(
        self,
        options: DiscordOptions,
        clock: Clock,
        watermarks: Watermarks,
        on_back: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_back` is called when the platform can be had again."""
        self._options = options
        manners = RateLimiter(clock, options.per_second, lambda _: CHAT_RATE)
        lanes = HttpPool(
            count_max=CONNECTIONS_MAX, timeout=httpx2.Timeout(SEND_SECONDS, connect=CONNECT_SECONDS)
        )
        self._api = DiscordApi(
            lanes=lanes, base=options.api_base, token=options.token, buckets=RateBuckets(clock)
        )
        self._receiving = DiscordReceiving(
            api=self._api, options=options, clock=clock, watermarks=watermarks, on_back=on_back
        )
        super().__init__(options, self._receiving, manners)

    @property
    def abilities(self) -> Abilities:
        # Not `idempotent_send`: the nonce holds for some minutes only, so a look comes first.
        return usual_abilities(self._options.ambiguous, QUESTION_UNITS_MAX)

    def split(self, text: str) -> tuple[str, ...]:
        return parts_of(text)

    async def pace(self, route: Route) -> None:
        await self._manners.wait_for_chat(channel_of(route))

    async def send(self, delivery: Delivery) -> SendOutcome:
        if not is_place(delivery.route):
            return Refused(reason=f"{delivery.route.chat} is no channel of Discord")
        if delivery.literal is not None and not is_whole(delivery):
            return Refused(reason="it cannot be shown whole in one message")
        await self._manners.wait_for_all(channel_of(delivery.route))
        return await outcome_of_sending(delivery, self._post(delivery))

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        if not is_place(delivery.route) or not self.abilities.finds_sent:
            return None
        try:
            found = await look_for(self._api, self.account, delivery, near)
        except (NotReached, NoAnswer) as error:
            return not_looked_for(error)
        log.info("delivery_looked_for", delivery=delivery.delivery_id, found=type(found).__name__)
        return found

    async def typing(self, route: Route) -> None:
        if is_place(route):
            place = channel_of(route)
            await self._show("POST", f"/channels/{place}/typing", None, "typing", place)

    async def edit(self, route: Route, platform_id: str, text: str) -> None:
        if is_place(route):
            place = channel_of(route)
            path = f"/channels/{place}/messages/{platform_id}"
            words = {"content": text[:TEXT_MAX], "allowed_mentions": {"parse": []}}
            await self._show("PATCH", path, words, "editMessage", place)

    async def draft(self, route: Route, turn_id: TurnId, text: str) -> None:
        """Discord has none."""

    async def fetch(self, attachment: Attachment, path: Path) -> None:
        await fetch(self._api, attachment, path, self._options.file_bytes_max)

    async def close(self) -> None:
        """End the connections to the platform. Nothing can be sent any more."""
        await self._api.lanes.aclose()

    async def _post(self, delivery: Delivery) -> SendOutcome:
        return outcome_of(await self._answer_to(delivery))

    async def _answer_to(self, delivery: Delivery) -> ApiAnswer:
        answer = await self._post_in(channel_of(delivery.route), delivery)
        if delivery.route.thread and answer.status == NOT_FOUND:
            # Certainly not sent. The thread of a message of ours begins with the first words in it.
            begun = await self._begin_thread(delivery.route)
            if begun.status == TOO_MANY:
                return begun
            route = delivery.route
            return await self._post_in(route.thread if begun.is_good else route.chat, delivery)
        return answer

    async def _begin_thread(self, route: Route) -> ApiAnswer:
        """The thread of a message has its id. Private channels have none."""
        path = f"/channels/{route.chat}/messages/{route.thread}"
        asked = await self._api.call("GET", path, None, kind="getMessage", place=route.chat)
        title = asked.read(ChannelMessage).content if asked.is_good else ""
        words = {"name": title[:TITLE_MAX].strip() or "schedule"}
        path = f"{path}/threads"
        return await self._api.call("POST", path, words, kind="startThread", place=route.chat)

    async def _post_in(self, place: str, delivery: Delivery) -> ApiAnswer:
        path, words = f"/channels/{place}/messages", message_of(delivery)
        if delivery.file is None:
            return await self._api.call("POST", path, words, kind="createMessage", place=place)
        held = await AsyncPath(self._options.home / delivery.file.path).read_bytes()
        name = delivery.file.name
        return await self._api.upload(path, words, name, held, kind="createMessage", place=place)

    async def _show(self, verb: str, path: str, content: object, kind: str, place: str) -> None:
        """What only passes: tried once, unless the channel is paused."""
        if not self._manners.may_show(place):
            return
        with suppress(NotReached, NoAnswer):
            answer = await self._api.call(
                verb, path, content, kind=kind, place=place, seconds=SHOW_SECONDS
            )
            if answer.status == TOO_MANY:
                where = EVERYWHERE if answer.refusal.is_global else place
                self._manners.pause_until(where, answer.refusal.retry_after)
