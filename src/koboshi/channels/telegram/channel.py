"""The Telegram channel: one bot, by long polling or by webhook."""

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx2
import structlog
from anyio import Path as AsyncPath
from anyio import sleep

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.telegram.best_effort import BestEffort
from koboshi.channels.telegram.client import CONNECT_SECONDS, SEND_SECONDS, BotApi
from koboshi.channels.telegram.files import fetch
from koboshi.channels.telegram.messages import (
    PART_UNITS_MAX,
    caption_of,
    draft_of,
    markup_of,
    message_of,
    parts_of,
    place_of,
)
from koboshi.channels.telegram.options import TelegramOptions
from koboshi.channels.telegram.outcomes import (
    TOO_MANY,
    complains_of_entities,
    outcome_of,
    wait_ms_of,
)
from koboshi.channels.telegram.probe import look, span_of
from koboshi.channels.telegram.rate_limiter import telegram_limiter
from koboshi.channels.telegram.receiving import Receiving
from koboshi.channels.telegram.types import BotAnswer
from koboshi.domain.files import Attachment
from koboshi.domain.hearing import Hearing
from koboshi.domain.ids import ChannelName, TurnId
from koboshi.domain.outbox import Delivery, Later, Near, Refused, SendOutcome, Unsure
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.route import Route
from koboshi.http_pool import HttpPool
from koboshi.ports.channel import Abilities, Accept
from koboshi.ports.clock import Clock

log = structlog.get_logger()

CONNECTIONS_MAX = 40
PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EINTR})
"""Errors that say nothing about the file: it can be read later."""
SETTLE_SECONDS = 3.0
"""A message may appear up to this long after the send."""
PROBE_TRIES = 3
PROBE_WAIT_MS_MAX = 5_000


class TooMany(Exception):
    """The platform wants to be left in peace for a while."""

    def __init__(self, answer: BotAnswer) -> None:
        super().__init__(answer.description)
        self.wait_ms = wait_ms_of(answer)


class TelegramChannel:
    def __init__(
        self,
        options: TelegramOptions,
        clock: Clock,
        on_back: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_back` is called when the platform can be had again."""
        self._options = options
        self._clock = clock
        self._manners = telegram_limiter(clock, options.per_second)
        lanes = HttpPool(
            count_max=CONNECTIONS_MAX, timeout=httpx2.Timeout(SEND_SECONDS, connect=CONNECT_SECONDS)
        )
        self._api = BotApi(lanes=lanes, base=options.api_base, token=options.token)
        self._passing = BestEffort(api=self._api, manners=self._manners)
        self._receiving = Receiving(
            api=self._api, options=options, clock=clock, passing=self._passing, on_back=on_back
        )

    @property
    def name(self) -> ChannelName:
        return self._options.name

    @property
    def account(self) -> str:
        return self._options.account

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            edits=True,
            threads=True,
            typing=True,
            drafts=True,
            finds_sent=self._options.ambiguous == "probe",
            holds_unsure=self._options.ambiguous == "hold",
            interactive=True,
            takes_files=True,
            question_units_max=PART_UNITS_MAX,
        )

    @property
    def trouble(self) -> str | None:
        """Why nothing can be received at the moment; None if it can."""
        return self._receiving.trouble

    @property
    def hearing(self) -> Hearing:
        return Hearing(heard_ms=self._receiving.heard_ms)

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        """Raises ChannelUnusable if the token is refused, NotReached or NoAnswer if the platform
        cannot be had."""
        await self._receiving.run(cursor, accept)

    def split(self, text: str) -> tuple[str, ...]:
        return parts_of(text)

    async def pace(self, route: Route) -> None:
        await self._manners.wait_for_chat(route.chat)

    async def send(self, delivery: Delivery) -> SendOutcome:
        if not _is_place(delivery.route):
            return Refused(reason=f"{delivery.route.chat} is no chat of Telegram")
        await self._manners.wait_for_all(delivery.route.chat)
        try:
            answer = await self._post(delivery)
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
        self._passing.note_429(delivery.route.chat, answer)
        return outcome_of(answer)

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        span = span_of(delivery, near)
        if span is None or not _is_place(delivery.route):
            return None
        probe = partial(self._probe, delivery)
        try:
            found = await look(span, probe)
            if isinstance(found, Later):
                await sleep(SETTLE_SECONDS)
                found = await look(span, probe)
        except (NotReached, NoAnswer) as error:
            missing = shortage_in(error)
            reason = f"it cannot be looked for: {missing or error}"
            return Unsure(reason=reason, is_lack=missing is not None)
        except TooMany as error:
            return Unsure(reason=str(error), wait_ms=error.wait_ms)
        log.info("delivery_looked_for", delivery=delivery.delivery_id, found=type(found).__name__)
        return found

    async def typing(self, route: Route) -> None:
        if _is_place(route):
            parameters = place_of(route) | {"action": "typing"}
            await self._passing.show("sendChatAction", route.chat, parameters)

    async def edit(self, route: Route, platform_id: str, text: str) -> None:
        parameters = {"chat_id": int(route.chat), "message_id": int(platform_id), "text": text}
        await self._passing.show("editMessageText", route.chat, parameters)

    async def draft(self, route: Route, turn_id: TurnId, text: str) -> None:
        """Only people alone with us can be shown a draft."""
        if _is_place(route) and not route.chat.startswith("-") and text.strip():
            parameters = draft_of(route, turn_id, text)
            await self._passing.show("sendMessageDraft", route.chat, parameters)

    async def fetch(self, attachment: Attachment, path: Path) -> None:
        await fetch(self._api, attachment, path, self._options.file_bytes_max)

    async def close(self) -> None:
        """End the connections to the platform. Nothing can be sent any more."""
        await self._api.lanes.aclose()

    async def _post(self, delivery: Delivery) -> BotAnswer:
        answer = await self._post_as(delivery, is_plain=False)
        if not complains_of_entities(answer):
            return answer
        log.warning("formatting_refused", delivery=delivery.delivery_id, why=answer.description)
        return await self._post_as(delivery, is_plain=True)

    async def _post_as(self, delivery: Delivery, *, is_plain: bool) -> BotAnswer:
        if delivery.file is None:
            words = message_of(delivery, is_plain=is_plain)
            return await self._api.call("sendMessage", words, seconds=SEND_SECONDS)
        path = AsyncPath(self._options.home / delivery.file.path)
        content, caption = await path.read_bytes(), caption_of(delivery, is_plain=is_plain)
        name = delivery.file.name
        return await self._api.upload("sendDocument", caption, "document", name, content)

    async def _probe(self, delivery: Delivery, number: int) -> BotAnswer:
        """Ask for one message. A platform that wants a short pause gets it here: a
        search that began anew each time would never end."""
        place = {"chat_id": int(delivery.route.chat), "message_id": number}
        markup = markup_of(delivery)
        parameters = place | ({"reply_markup": markup} if markup else {})
        tries = 0
        while True:
            tries += 1
            await self._manners.wait_for_all()
            answer = await self._api.call(
                "editMessageReplyMarkup", parameters, seconds=SEND_SECONDS
            )
            if answer.error_code != TOO_MANY:
                return answer
            self._passing.note_429(delivery.route.chat, answer)
            if tries == PROBE_TRIES or wait_ms_of(answer) > PROBE_WAIT_MS_MAX:
                raise TooMany(answer)
            await sleep(wait_ms_of(answer) / 1000)


def _is_place(route: Route) -> bool:
    """Whether the route can be one of ours: ids are whole numbers."""
    chat, thread = route.chat.removeprefix("-"), route.thread
    return chat.isdecimal() and chat.isascii() and (not thread or thread.isdecimal())
