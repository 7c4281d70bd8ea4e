"""The Telegram channel: one bot, by long polling or by webhook."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx2
import structlog
from anyio import Path as AsyncPath
from anyio import sleep

from koboshi.channels.common.account_channel import AccountChannel, usual_abilities
from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.common.sending import not_looked_for, outcome_of_sending
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
    outcome_of_topic,
    wait_ms_of,
)
from koboshi.channels.telegram.probe import look, span_of
from koboshi.channels.telegram.rate_limiter import telegram_limiter
from koboshi.channels.telegram.receiving import Receiving
from koboshi.channels.telegram.types import BotAnswer
from koboshi.domain.files import Attachment
from koboshi.domain.ids import TurnId
from koboshi.domain.outbox import Delivery, Later, Near, Refused, SendOutcome, Unsure
from koboshi.domain.route import Route
from koboshi.http_pool import HttpPool
from koboshi.ports.channel import Abilities
from koboshi.ports.clock import Clock

log = structlog.get_logger()

CONNECTIONS_MAX = 40
SETTLE_SECONDS = 3.0
"""A message may appear up to this long after the send."""
PROBE_TRIES = 3
PROBE_WAIT_MS_MAX = 5_000


class TooMany(Exception):
    """The platform asks for a pause."""

    def __init__(self, answer: BotAnswer) -> None:
        super().__init__(answer.description)
        self.wait_ms = wait_ms_of(answer)


class TelegramChannel(AccountChannel):
    def __init__(
        self,
        options: TelegramOptions,
        clock: Clock,
        on_back: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_back` is called when the platform can be had again."""
        self._options = options
        self._clock = clock
        manners = telegram_limiter(clock, options.per_second)
        lanes = HttpPool(
            count_max=CONNECTIONS_MAX, timeout=httpx2.Timeout(SEND_SECONDS, connect=CONNECT_SECONDS)
        )
        self._api = BotApi(lanes=lanes, base=options.api_base, token=options.token)
        self._passing = BestEffort(api=self._api, manners=manners)
        self._receiving = Receiving(
            api=self._api, options=options, clock=clock, passing=self._passing, on_back=on_back
        )
        super().__init__(options, self._receiving, manners)

    @property
    def abilities(self) -> Abilities:
        usual = usual_abilities(self._options.ambiguous, PART_UNITS_MAX)
        exclusive = not self._options.webhook_url
        return replace(usual, drafts=True, begins_once=True, exclusive=exclusive)

    def split(self, text: str) -> tuple[str, ...]:
        return parts_of(text)

    async def send(self, delivery: Delivery) -> SendOutcome:
        if not _is_place(delivery.route):
            return Refused(reason=f"{delivery.route.chat} is no chat of Telegram")
        await self._manners.wait_for_all(delivery.route.chat)
        if delivery.begins_thread:
            return await outcome_of_sending(delivery, self._make_topic(delivery))
        return await outcome_of_sending(delivery, self._post(delivery))

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
            return not_looked_for(error)
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

    async def _make_topic(self, delivery: Delivery) -> SendOutcome:
        route = delivery.route
        topic = {"chat_id": int(route.chat), "name": delivery.text}
        answer = await self._api.call("createForumTopic", topic, seconds=SEND_SECONDS)
        self._passing.note_429(route.chat, answer)
        return outcome_of_topic(answer, is_private=not route.chat.startswith("-"))

    async def _post(self, delivery: Delivery) -> SendOutcome:
        answer = await self._post_as(delivery, is_plain=False)
        if complains_of_entities(answer):
            log.warning("formatting_refused", delivery=delivery.delivery_id, why=answer.description)
            answer = await self._post_as(delivery, is_plain=True)
        self._passing.note_429(delivery.route.chat, answer)
        return outcome_of(answer)

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
