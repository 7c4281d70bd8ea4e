"""The Matrix channel: one account at one homeserver."""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx2
import msgspec
import structlog
from anyio import Path as AsyncPath

from koboshi.channels.common.account_channel import AccountChannel, usual_abilities
from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.common.choices import NUMBERED_MAX, key_of
from koboshi.channels.common.fetching import check_size, keep_pieces
from koboshi.channels.common.pacing import ChatRate, RateLimiter
from koboshi.channels.matrix.client import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    TOO_MANY,
    MatrixApi,
    MatrixRefused,
    room_path,
)
from koboshi.channels.matrix.codec import ENCRYPTED, MESSAGE, REACTION, SENDS_KEY, opening_of
from koboshi.channels.matrix.messages import (
    TEXT_UNITS_MAX,
    content_of,
    edit_of,
    file_of,
    outcome_of,
    parts_of,
    wait_ms_of,
)
from koboshi.channels.matrix.options import MatrixOptions
from koboshi.channels.matrix.receiving import REMEMBERED_MS, MatrixReceiving
from koboshi.channels.matrix.rooms import MatrixRooms
from koboshi.channels.matrix.types import MessagesAnswer, event_of
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment, safe_name
from koboshi.domain.ids import TurnId
from koboshi.domain.outbox import Delivery, Later, Near, Refused, SendOutcome, Sent, Unsure
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.route import Route
from koboshi.http_pool import HttpPool
from koboshi.ports.channel import Abilities
from koboshi.ports.clock import Clock

if TYPE_CHECKING:
    from koboshi.channels.matrix.encryption import Encryption

log = structlog.get_logger()

CONNECTIONS_MAX = 20
ROOM_RATE = ChatRate(per_second=2.0, at_once=10)
SHOW_SECONDS = 5.0
TYPING_MS = 8_000
PAGES_LOOKED_AT = 20
LOOKED_BACK_MS = 48 * 3_600_000
"""A send is not looked for among events that are so much older than it: clocks may differ."""


class _SentEvent(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str


class MatrixChannel(AccountChannel):
    def __init__(
        self, options: MatrixOptions, clock: Clock, on_back: Callable[[], None] = lambda: None
    ) -> None:
        """`on_back` is called when the homeserver can be had again."""
        self._options = options
        manners = RateLimiter(clock, options.per_second, lambda _room: ROOM_RATE)
        timeout = httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        lanes = HttpPool(count_max=CONNECTIONS_MAX, timeout=timeout)
        self._api = MatrixApi(lanes=lanes, base=options.homeserver, token=options.token)
        self._receiving = MatrixReceiving(
            api=self._api,
            options=options,
            clock=clock,
            encryption=self._encryption_of(options, clock),
            on_back=on_back,
        )
        super().__init__(options, self._receiving, manners)

    @property
    def abilities(self) -> Abilities:
        usual = usual_abilities(self._options.ambiguous, TEXT_UNITS_MAX)
        is_known = usual.finds_sent and self._receiving.knows_keys
        return replace(usual, idempotent_send=is_known, repeat_within_ms=REMEMBERED_MS)

    def split(self, text: str) -> tuple[str, ...]:
        return parts_of(text)

    async def send(self, delivery: Delivery) -> SendOutcome:
        if not delivery.route.chat.startswith("!"):
            return Refused(reason=f"{delivery.route.chat} is no room of Matrix")
        await self._manners.wait_for_all(delivery.route.chat)
        try:
            kind, content = await self._dressed(delivery.route.chat, await self._content(delivery))
        except MatrixRefused as refused:
            return outcome_of(refused)
        except (NotReached, NoAnswer) as error:  # a file that is nowhere referred to is not sent
            return self._not_now(error)
        except OSError as error:
            missing = shortage_in(error)
            if missing is not None:
                return Later(wait_ms=0, reason=missing, is_lack=True)
            return Refused(reason=f"the file cannot be read: {error.strerror}")
        try:
            return await self._put(delivery, kind, content)
        except NotReached as error:
            return self._not_now(error)
        except NoAnswer as error:
            return Unsure(reason=str(error))
        except MatrixRefused as refused:
            self._note_429(delivery.route.chat, refused)
            return outcome_of(refused)

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:  # noqa: ARG002
        """Look for the key among what we have said in the room, from the newest back."""
        room, place = delivery.route.chat, ""
        oldest_ms = delivery.created_ms - LOOKED_BACK_MS
        wanted = msgspec.json.encode(
            {"senders": [self.account], "types": [MESSAGE, ENCRYPTED]}
        ).decode()
        query = {"dir": "b", "limit": "100", "filter": wanted}
        try:
            for _ in range(PAGES_LOOKED_AT):
                answer = await self._api.ask_patiently(
                    MessagesAnswer,
                    "GET",
                    room_path(room, "messages"),
                    query=query | ({"from": place} if place else {}),
                )
                events = [event for raw in answer.chunk if (event := event_of(raw)) is not None]
                for event in events:
                    if event.content.get(SENDS_KEY) == delivery.send_key:
                        return Sent(platform_id=event.event_id)
                place = answer.end or ""
                if not place or any(event.origin_server_ts < oldest_ms for event in events):
                    return Later(wait_ms=0, reason="the room does not have it")
        except (NotReached, NoAnswer, MatrixRefused) as error:
            missing = shortage_in(error)
            reason = f"it cannot be looked for: {missing or error}"
            return Unsure(reason=reason, is_lack=missing is not None)
        return None

    async def typing(self, route: Route) -> None:
        if self._may_show(route):
            me = quote(self.account, safe="")
            body = {"typing": True, "timeout": TYPING_MS}
            with suppress(NotReached, NoAnswer, MatrixRefused):
                place = f"{room_path(route.chat)}/typing/{me}"
                await self._api.call("PUT", place, body, seconds=SHOW_SECONDS)

    async def edit(self, route: Route, platform_id: str, text: str) -> None:
        if self._may_show(route):
            key = hashlib.sha256(f"{platform_id}\n{text}".encode()).hexdigest()[:24]
            with suppress(NotReached, NoAnswer, MatrixRefused):
                kind, content = await self._dressed(route.chat, edit_of(platform_id, text))
                place = room_path(route.chat, "send", kind, f"edit-{key}")
                await self._api.call("PUT", place, content, seconds=SHOW_SECONDS)

    async def draft(self, route: Route, turn_id: TurnId, text: str) -> None:
        """Nothing: every edit would be an event for ever."""

    async def fetch(self, attachment: Attachment, path: Path) -> None:
        bytes_max = self._options.file_bytes_max
        check_size(attachment.size, bytes_max)
        address, opening = opening_of(attachment.reference)
        async with self._api.download(address) as pieces:
            if opening is not None:
                pieces = self._opened(pieces, opening)
            await keep_pieces(pieces, attachment, path, bytes_max)

    async def close(self) -> None:
        """End the connections to the homeserver. Nothing can be sent any more."""
        await self._api.lanes.aclose()
        if self._receiving.encryption is not None:
            self._receiving.encryption.close()

    def _encryption_of(self, options: MatrixOptions, clock: Clock) -> "Encryption | None":
        if not options.encryption:
            return None
        # An extra: a gateway without encryption does not load its libraries.
        from koboshi.channels.matrix.encryption import Encryption

        folder = options.home / "matrix" / safe_name(options.name.replace(":", "-"), "matrix")
        return Encryption(api=self._api, user=options.user, folder=folder, clock=clock)

    async def _dressed(
        self, room: str, content: dict[str, object]
    ) -> tuple[str, dict[str, object]]:
        """The event as the room wants it. Raises what a call raises; nothing is sent then."""
        rooms = self._known_rooms()
        return (MESSAGE, content) if rooms is None else await rooms.dressed(room, MESSAGE, content)

    async def _is_encrypted(self, room: str) -> bool:
        rooms = self._known_rooms()
        return rooms is not None and (await rooms.facts(room)).is_encrypted

    def _known_rooms(self) -> MatrixRooms | None:
        """What is known of rooms; None where it does not matter. Raises NotReached."""
        if self._receiving.encryption is None:
            return None
        if self._receiving.rooms is None:
            raise NotReached("it is not known yet whether the room is encrypted")
        return self._receiving.rooms

    async def _opened(
        self, pieces: AsyncIterator[bytes], opening: tuple[str, str, str]
    ) -> AsyncIterator[bytes]:
        """An encrypted file, opened: it is whole before any of it can be trusted."""
        if self._receiving.encryption is None:
            raise FileNotHad("it is encrypted")
        from koboshi.channels.matrix.encryption import decrypted_file

        content = bytearray()
        async for piece in pieces:
            content += piece
            check_size(len(content), self._options.file_bytes_max)
        yield await decrypted_file(bytes(content), *opening)

    async def _content(self, delivery: Delivery) -> dict[str, object]:
        if delivery.file is None:
            return content_of(delivery)
        name = delivery.file.name
        content = await AsyncPath(self._options.home / delivery.file.path).read_bytes()
        kind = guess_type(name)[0] or "application/octet-stream"
        if await self._is_encrypted(delivery.route.chat):
            return await self._encrypted(delivery, content, kind)
        address = await self._api.upload(name, kind, content)
        return file_of(delivery, {"url": address}, len(content), kind)

    async def _encrypted(self, delivery: Delivery, content: bytes, kind: str) -> dict[str, object]:
        """The same with a file that the homeserver cannot read."""
        from koboshi.channels.matrix.encryption import encrypted_file

        sealed, opening = await encrypted_file(content)
        address = await self._api.upload("", "application/octet-stream", sealed)
        return file_of(delivery, {"file": {**opening, "url": address}}, len(content), kind)

    async def _put(self, delivery: Delivery, kind: str, content: dict[str, object]) -> SendOutcome:
        """The send itself: the key makes a repeat of it the same event."""
        room = delivery.route.chat
        place = room_path(room, "send", kind, delivery.send_key)
        answer = await self._api.call("PUT", place, content)
        try:
            sent = msgspec.json.decode(answer, type=_SentEvent)
        except msgspec.DecodeError:
            raise NoAnswer("the homeserver took it and did not say as what") from None
        for number in range(1, len(delivery.choices[:NUMBERED_MAX]) + 1):
            mark = partial(self._mark, room, sent.event_id, number, delivery.send_key)
            self._receiving.show(mark)
        return Sent(platform_id=sent.event_id)

    async def _mark(self, room: str, event_id: str, number: int, key: str) -> None:
        """A mark below a question, to be pressed."""
        relation = {"rel_type": "m.annotation", "event_id": event_id, "key": key_of(number)}
        place = room_path(room, "send", REACTION, f"{key}-{number}")
        await self._api.call("PUT", place, {"m.relates_to": relation}, seconds=SHOW_SECONDS)

    def _may_show(self, route: Route) -> bool:
        return route.chat.startswith("!") and self._manners.may_show(route.chat)

    def _note_429(self, room: str, refused: MatrixRefused) -> None:
        if refused.status == TOO_MANY:
            self._manners.pause_until(room, wait_ms_of(refused) / 1000)

    def _not_now(self, error: Exception) -> Later:
        missing = shortage_in(error)
        reason = f"not reached: {missing or error}"
        return Later(wait_ms=0, reason=reason, is_lack=missing is not None)
