"""The Discord channel: one bot, on its gateway and its REST API."""

import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx2
import structlog
from anyio import Path as AsyncPath

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.common.pacing import EVERYWHERE, ChatRate, RateLimiter
from koboshi.channels.discord.client import (
    CONNECT_SECONDS,
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
from koboshi.domain.files import Attachment
from koboshi.domain.hearing import Hearing
from koboshi.domain.ids import ChannelName, TurnId
from koboshi.domain.outbox import Delivery, Later, Near, Refused, SendOutcome, Unsure
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.route import Route
from koboshi.http_pool import HttpPool
from koboshi.ports.channel import Abilities, Accept, Watermarks
from koboshi.ports.clock import Clock

log = structlog.get_logger()

CONNECTIONS_MAX = 40
SHOW_SECONDS = 5.0
CHAT_RATE = ChatRate(per_second=1.0, at_once=5)
"""About what a channel is allowed; its own buckets are told by each answer."""
PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EINTR})
"""Errors that say nothing about the file: it can be read later."""


class DiscordChannel:
    def __init__(
        self,
        options: DiscordOptions,
        clock: Clock,
        watermarks: Watermarks,
        on_back: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_back` is called when the platform can be had again."""
        self._options = options
        self._manners = RateLimiter(clock, options.per_second, lambda _: CHAT_RATE)
        lanes = HttpPool(
            count_max=CONNECTIONS_MAX, timeout=httpx2.Timeout(SEND_SECONDS, connect=CONNECT_SECONDS)
        )
        self._api = DiscordApi(
            lanes=lanes, base=options.api_base, token=options.token, buckets=RateBuckets(clock)
        )
        self._receiving = DiscordReceiving(
            api=self._api, options=options, clock=clock, watermarks=watermarks, on_back=on_back
        )

    @property
    def name(self) -> ChannelName:
        return self._options.name

    @property
    def account(self) -> str:
        return self._options.account

    @property
    def abilities(self) -> Abilities:
        # Not `idempotent_send`: the nonce holds for some minutes only, so a look comes first.
        return Abilities(
            edits=True,
            threads=True,
            typing=True,
            finds_sent=self._options.ambiguous == "probe",
            holds_unsure=self._options.ambiguous == "hold",
            interactive=True,
            takes_files=True,
            question_units_max=QUESTION_UNITS_MAX,
        )

    @property
    def trouble(self) -> str | None:
        """Why nothing can be received at the moment; None if it can."""
        return self._receiving.trouble

    @property
    def hearing(self) -> Hearing:
        return self._receiving.hearing

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        """Raises ChannelUnusable if a person has to change something, NotReached or NoAnswer if
        the platform cannot be had."""
        await self._receiving.run(cursor, accept)

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
        try:
            return outcome_of(await self._post(delivery))
        except NotReached as error:
            missing = shortage_in(error)
            reason = f"not reached: {missing or error}"
            return Later(wait_ms=0, reason=reason, is_lack=missing is not None)
        except NoAnswer as error:
            return Unsure(reason=str(error))
        except OSError as error:  # before anything was sent: it is a file of ours
            if delivery.file is None or error.errno in PASSING:
                is_lack = shortage_in(error) is not None
                return Later(wait_ms=0, reason=f"not now: {error.strerror}", is_lack=is_lack)
            return Refused(reason=f"the file cannot be read: {error.strerror}")

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        if not is_place(delivery.route) or not self.abilities.finds_sent:
            return None
        try:
            found = await look_for(self._api, self.account, delivery, near)
        except (NotReached, NoAnswer) as error:
            missing = shortage_in(error)
            reason = f"it cannot be looked for: {missing or error}"
            return Unsure(reason=reason, is_lack=missing is not None, was_sent=False)
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

    async def _post(self, delivery: Delivery) -> ApiAnswer:
        place = channel_of(delivery.route)
        path, words = f"/channels/{place}/messages", message_of(delivery)
        if delivery.file is None:
            return await self._api.call("POST", path, words, kind="createMessage", place=place)
        held = await AsyncPath(self._options.home / delivery.file.path).read_bytes()
        name = delivery.file.name
        return await self._api.upload(path, words, name, held, kind="createMessage", place=place)

    async def _show(self, verb: str, path: str, content: object, kind: str, place: str) -> None:
        """What only passes: tried once, unless the channel is to be left in peace."""
        if not self._manners.may_show(place):
            return
        with suppress(NotReached, NoAnswer):
            answer = await self._api.call(
                verb, path, content, kind=kind, place=place, seconds=SHOW_SECONDS
            )
            if answer.status == TOO_MANY:
                where = EVERYWHERE if answer.refusal.is_global else place
                self._manners.pause_until(where, answer.refusal.retry_after)
