"""The Slack channel: one app in one workspace, by Socket Mode or by the Events API over HTTP."""

from collections.abc import Callable
from pathlib import Path

import httpx2
import structlog
from anyio import Path as AsyncPath
from anyio import sleep

from koboshi.channels.common.account_channel import AccountChannel, usual_abilities
from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.common.fetching import check_size, keep_pieces
from koboshi.channels.common.pacing import ChatRate, RateLimiter
from koboshi.channels.common.sending import not_looked_for, outcome_of_sending
from koboshi.channels.slack.api import CALL_SECONDS, CONNECT_SECONDS, Answered, SlackApi
from koboshi.channels.slack.best_effort import SlackAsides
from koboshi.channels.slack.blocks import (
    PART_UNITS_MAX,
    comment_of,
    edit_of,
    message_of,
    parts_of,
)
from koboshi.channels.slack.codec import is_ts
from koboshi.channels.slack.find import Finder
from koboshi.channels.slack.history import PageRefused, SlackHistoryReader, TooManyPages
from koboshi.channels.slack.options import SlackOptions
from koboshi.channels.slack.outcomes import (
    NOT_LET_IN,
    RATE_LIMITED,
    complains_of_blocks,
    outcome_of,
    refusal_of,
)
from koboshi.channels.slack.receiving import SlackReceiving
from koboshi.channels.slack.types import SlackFileReply, SlackReply
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment, OutFile
from koboshi.domain.ids import TurnId
from koboshi.domain.outbox import Delivery, Later, Near, Refused, SendOutcome, Sent, Unsure
from koboshi.domain.route import Route
from koboshi.http_pool import HttpPool
from koboshi.ports.channel import Abilities, Watermarks
from koboshi.ports.clock import Clock

log = structlog.get_logger()

CONNECTIONS_MAX = 40
SETTLE_SECONDS = 3.0
"""A message may appear in the history up to this long after the send."""
CHAT_RATE = ChatRate(per_second=1.0, at_once=3)
"""Slack takes one message a second in each conversation, and short bursts."""
WORKING = "is working…"


class SlackChannel(AccountChannel):
    def __init__(
        self,
        options: SlackOptions,
        clock: Clock,
        watermarks: Watermarks,
        on_back: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_back` is called when the platform can be had again."""
        self._options = options
        manners = RateLimiter(clock, options.per_second, lambda _: CHAT_RATE)
        lanes = HttpPool(
            count_max=CONNECTIONS_MAX, timeout=httpx2.Timeout(CALL_SECONDS, connect=CONNECT_SECONDS)
        )
        self._api = SlackApi(lanes=lanes, base=options.api_base, token=options.token, clock=clock)
        self._asides = SlackAsides(api=self._api, manners=manners)
        history = SlackHistoryReader(api=self._api)
        self._finder = Finder(history=history)
        self._receiving = SlackReceiving(
            api=self._api,
            options=options,
            clock=clock,
            asides=self._asides,
            history=history,
            finder=self._finder,
            watermarks=watermarks,
            on_back=on_back,
        )
        super().__init__(options, self._receiving, manners)

    @property
    def abilities(self) -> Abilities:
        return usual_abilities(self._options.ambiguous, PART_UNITS_MAX)

    def split(self, text: str) -> tuple[str, ...]:
        return parts_of(text)

    async def send(self, delivery: Delivery) -> SendOutcome:
        if not _is_place(delivery.route):
            return Refused(reason=f"{delivery.route.chat} is no conversation of Slack")
        await self._manners.wait_for_all(delivery.route.chat)
        if delivery.file is None:
            return await outcome_of_sending(delivery, self._post(delivery))
        return await outcome_of_sending(delivery, self._send_file(delivery, delivery.file))

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        """By our key beside the message. Without the scope to read it, nothing can be known."""
        if not _is_place(delivery.route) or not self._receiving.can_find:
            return None
        try:
            found = await self._finder.look(delivery, near, self._api.now_s)
            if isinstance(found, Later):
                await sleep(SETTLE_SECONDS)
                found = await self._finder.look(delivery, near, self._api.now_s)
        except TooManyPages as limited:
            return Unsure(reason=str(limited), wait_ms=limited.wait_ms)
        except PageRefused as refused:
            log.warning("not_looked_for", delivery=delivery.delivery_id, why=str(refused))
            return None
        except (NotReached, NoAnswer) as error:
            return not_looked_for(error)
        log.info("delivery_looked_for", delivery=delivery.delivery_id, found=type(found).__name__)
        return found

    async def typing(self, route: Route) -> None:
        """Slack shows it in threads only."""
        if _is_place(route) and route.thread:
            place = {"channel_id": route.chat, "thread_ts": route.thread, "status": WORKING}
            await self._asides.show("assistant.threads.setStatus", route.chat, {**place})

    async def edit(self, route: Route, platform_id: str, text: str) -> None:
        if _is_place(route) and is_ts(platform_id) and text.strip():
            await self._asides.show("chat.update", route.chat, edit_of(route, platform_id, text))

    async def draft(self, route: Route, turn_id: TurnId, text: str) -> None:
        """Nothing is shown."""

    async def fetch(self, attachment: Attachment, path: Path) -> None:
        """Raises FileNotHad if it never will come, and NotReached or NoAnswer if it may yet."""
        bytes_max = self._options.file_bytes_max
        check_size(attachment.size, bytes_max)
        answered = await self._api.read("files.info", {"file": attachment.reference})
        reply = answered.read(SlackFileReply)
        if reply.error in NOT_LET_IN or reply.error == RATE_LIMITED:
            raise NoAnswer(reply.error)
        if not reply.ok or reply.file is None or not reply.file.url_private_download:
            raise FileNotHad(reply.error or "the platform does not say where it is")
        is_page = reply.file.mimetype == "text/html"
        async with self._api.download(reply.file.url_private_download, is_page=is_page) as pieces:
            await keep_pieces(pieces, attachment, path, bytes_max)

    async def close(self) -> None:
        """End the connections to the platform. Nothing can be sent any more."""
        await self._api.lanes.aclose()

    async def _post(self, delivery: Delivery) -> SendOutcome:
        answered = await self._api.write("chat.postMessage", message_of(delivery))
        reply = answered.read(SlackReply)
        if complains_of_blocks(reply):
            log.warning("formatting_refused", delivery=delivery.delivery_id, why=reply.error)
            plain = message_of(delivery, is_plain=True)
            answered = await self._api.write("chat.postMessage", plain)
            reply = answered.read(SlackReply)
        self._note_429(delivery.route.chat, answered)
        return outcome_of(reply, answered.wait_ms)

    async def _send_file(self, delivery: Delivery, file: OutFile) -> SendOutcome:
        """In three steps, of which people see only the last: until then nothing was sent."""
        content = await AsyncPath(self._options.home / file.path).read_bytes()
        try:
            asked = {"filename": file.name, "length": max(len(content), 1)}
            answered = await self._api.read("files.getUploadURLExternal", asked)
            reply = answered.read(SlackReply)
            if not reply.ok:
                self._note_429(delivery.route.chat, answered)
                return refusal_of(reply, answered.wait_ms)
            status = await self._api.upload(reply.upload_url, content or b"\n")
        except NoAnswer as error:
            return Later(wait_ms=0, reason=f"the file was not taken: {error}")
        if status != httpx2.codes.OK:
            return Later(wait_ms=0, reason=f"the file was answered with {status}")
        return await self._share(delivery, file, reply.file_id)

    async def _share(self, delivery: Delivery, file: OutFile, file_id: str) -> SendOutcome:
        route, comment = delivery.route, comment_of(delivery)
        asked: dict[str, object] = {
            "files": [{"id": file_id, "title": file.name}],
            "channel_id": route.chat,
        }
        asked |= {"thread_ts": route.thread} if route.thread else {}
        asked |= {"initial_comment": comment} if comment else {}
        answered = await self._api.write("files.completeUploadExternal", asked)
        reply = answered.read(SlackReply)
        self._note_429(route.chat, answered)
        if reply.ok:
            return Sent(platform_id=file_id)
        return refusal_of(reply, answered.wait_ms)

    def _note_429(self, chat: str, answered: Answered) -> None:
        """Show nothing there for as long as the platform asks for, if it does."""
        if answered.wait_ms:
            self._manners.pause_until(chat, answered.wait_ms / 1000)


def _is_place(route: Route) -> bool:
    """Whether the route can be one of ours."""
    chat, thread = route.chat, route.thread
    return chat[:1] in {"C", "D", "G"} and chat.isalnum() and (not thread or is_ts(thread))
