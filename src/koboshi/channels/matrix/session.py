"""What one connection to a homeserver takes in. See `receiving.py` for how it holds together."""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import structlog

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.common.catch_up import CatchUp, HistoryPage
from koboshi.channels.matrix.client import (
    GONE,
    MatrixApi,
    MatrixRefused,
    room_path,
)
from koboshi.channels.matrix.codec import (
    ENCRYPTED,
    ENCRYPTION,
    KINDS,
    MEMBER,
    MESSAGE,
    MatrixReader,
    is_new_join,
    since_invited,
    wants_target,
    with_edits,
)
from koboshi.channels.matrix.invitations import Invitations, is_awaited
from koboshi.channels.matrix.options import MatrixOptions
from koboshi.channels.matrix.refusal import tell_of_encryption
from koboshi.channels.matrix.rooms import MatrixRooms
from koboshi.channels.matrix.sealed import (
    KEPT_MS,
    Sealed,
    due_to_be_told,
    has_place,
    sealed_in,
    words_for,
)
from koboshi.channels.matrix.types import (
    MatrixEvent,
    MessagesAnswer,
    SyncAnswer,
    Timeline,
    event_of,
    events_of,
)
from koboshi.ports.channel import Accept, Inbound
from koboshi.ports.clock import Clock

if TYPE_CHECKING:
    from koboshi.channels.matrix.encryption import Encryption

log = structlog.get_logger()

PAGE_MAX = 100
BACK_PAGES_MAX = 20
"""How far before our join an invitation is looked for."""
STORED_SECONDS = 60.0
"""How often a place without any events is stored."""
_PAGES = msgspec.json.encode({"types": list(KINDS), "lazy_load_members": True}).decode()


@dataclass(slots=True, kw_only=True)
class MatrixSession:
    api: MatrixApi
    options: MatrixOptions
    clock: Clock
    accept: Accept
    reader: MatrixReader
    rooms: MatrixRooms
    show: Callable[[Callable[[], Awaitable[None]]], None]
    marks: dict[str, str]
    """The watermark of each room that has one."""
    behind: CatchUp | None = None
    _stored: float = field(default=float("-inf"))
    _has_tried_sealed: bool = False
    _invitations: Invitations = field(init=False)

    def __post_init__(self) -> None:
        self._invitations = Invitations(
            api=self.api, options=self.options, clock=self.clock, show=self.show
        )

    async def begin(self, answer: SyncAnswer) -> None:
        """The first connection: nothing from before is taken, but invitations are."""
        await self._take_keys(answer)
        marks = await self._invitations.follow(answer.rooms.invite, self.marks)
        await self.accept([], answer.next_batch, marks)
        self.marks |= marks

    async def take(self, since: str, answer: SyncAnswer) -> None:
        """Store all that an answer brings, and then its place."""
        rooms = await self._take_keys(answer)
        marks = await self._invitations.follow(answer.rooms.invite, self.marks)
        joined = {room: events_of(news.timeline.events) for room, news in answer.rooms.join.items()}
        late = {room for room, events in joined.items() if self._is_new(room, events)}
        limited = [
            room
            for room, news in answer.rooms.join.items()
            if news.timeline.limited and room not in late
        ]
        if limited:
            await self._catch_up(since, limited)
        batch: list[Inbound] = []
        for room, events in joined.items():
            if room in late:
                events = await self._back_to_invitation(answer.rooms.join[room].timeline, room)
            batch += await self._read(room, events, marks)
            if room in self.marks or room in limited:
                marks[room] = ""
        batch += await self._open_sealed(rooms, answer, marks)
        is_time = self.clock.monotonic() - self._stored > STORED_SECONDS
        if batch or marks or (is_time and answer.next_batch != since):
            await self.accept(batch, answer.next_batch, marks)
            self._stored = self.clock.monotonic()
        self.marks = {room: mark for room, mark in (self.marks | marks).items() if mark}
        self._acknowledge(batch)

    def _is_new(self, room: str, events: Sequence[MatrixEvent]) -> bool:
        """Whether we have joined it since the last answer."""
        me = self.options.user
        is_expected = is_awaited(self.marks.get(room, ""))
        return is_expected or any(is_new_join(event, me) for event in events)

    async def _catch_up(self, since: str, limited: Sequence[str]) -> None:
        """Read forward what an answer has left out."""
        history = _RoomHistory(session=self, since=since)
        behind = self.behind = CatchUp(history=history, accept=self.accept, clock=self.clock)
        behind.add({room: self._place_in(room, since) for room in limited})
        log.info("matrix_behind", channel=self.options.name, rooms=len(limited))
        await behind.run()
        self.behind = None

    def _place_in(self, room: str, since: str) -> str:
        """Where the reading of a room begins, as a watermark: at `since`, or further on if a
        reading of the same gap was cut off."""
        mark = self.marks.get(room, "")
        return mark if mark.startswith(f"{since}|") else f"{since}|{since}"

    async def _back_to_invitation(self, timeline: Timeline, room: str) -> Sequence[MatrixEvent]:
        """The events behind the invitation that we have followed, with those before our join."""
        events, me = list(events_of(timeline.events)), self.options.user
        place = timeline.prev_batch
        for _ in range(BACK_PAGES_MAX):
            kept, is_whole = since_invited(events, me)
            has_join = any(is_new_join(event, me) for event in events)
            if (has_join and is_whole) or not place:
                return kept
            page = await self.page(room, place, "b")
            events[:0] = events_of(page.chunk)[::-1]
            place = page.end or ""
        return since_invited(events, me)[0]

    async def page(self, room: str, place: str, direction: str) -> MessagesAnswer:
        """A page of the history of a room."""
        query = {"from": place, "dir": direction, "limit": str(PAGE_MAX), "filter": _PAGES}
        path = room_path(room, "messages")
        return await self.api.ask_patiently(MessagesAnswer, "GET", path, query=query)

    async def read_page(self, room: str, page: MessagesAnswer) -> Sequence[Inbound]:
        marks = dict[str, str]()
        found = await self._read(room, events_of(page.chunk), marks)
        if marks:
            await self.accept([], None, marks)
            self.marks |= marks
        return found

    async def _read(
        self, room: str, events: Sequence[MatrixEvent], marks: dict[str, str]
    ) -> list[Inbound]:
        """What the events say to us. Those that cannot be opened yet get marks."""
        found: list[Inbound] = []
        if self._encryption is not None:
            events = await self._encryption.unseal(room, events)
        for event in with_edits(events):
            if event.type in (MEMBER, ENCRYPTION):
                self.rooms.forget(room)
                continue
            if event.sender == self.options.user:
                continue
            if await self._keep_sealed(room, event, marks):
                continue
            target = await self._target(room, wants_target(event, self.options.user))
            facts = await self.rooms.facts(room)
            inbound = self.reader.read(room, event, facts, target)
            if inbound is not None:
                found.append(inbound)
        return found

    async def _target(self, room: str, event_id: str) -> MatrixEvent | None:
        """What a reaction marks; None if that cannot be seen."""
        if not event_id:
            return None
        try:
            found = event_of(
                await self.api.call_patiently("GET", room_path(room, "event", event_id))
            )
        except MatrixRefused as refused:
            if refused.status not in GONE:
                raise
            return None
        if found is None or self._encryption is None:
            return found
        return (await self._encryption.unseal(room, [found]))[0]

    @property
    def _encryption(self) -> "Encryption | None":
        return self.rooms.encryption

    async def _take_keys(self, answer: SyncAnswer) -> Collection[str]:
        """Make durable what came for our device. Returns the rooms to which keys came."""
        if self._encryption is None:
            return ()
        rooms = await self._encryption.take(answer)
        if self._encryption.has_errands:
            self.show(self._encryption.look_after_devices)
        return rooms

    async def _keep_sealed(self, room: str, event: MatrixEvent, marks: dict[str, str]) -> bool:
        """Keep an event that cannot be opened yet, as a mark. Those of strangers are only noted:
        they must not use up the room for others."""
        is_sealed = event.type == ENCRYPTED and bool(event.content) and bool(event.event_id)
        if self._encryption is None or not is_sealed:
            return False
        sealed = Sealed(
            room=room,
            event_id=event.event_id,
            sender=event.sender,
            since_ms=self.clock.now_ms(),
        )
        kept = self.marks.get(sealed.chat)
        if kept is None and not has_place([*self.marks, *marks], room):
            return False
        if not await self.options.is_allowed(event.sender):
            return False
        marks[sealed.chat] = kept or sealed.mark
        return True

    async def _open_sealed(
        self, rooms: Collection[str], answer: SyncAnswer, marks: dict[str, str]
    ) -> list[Inbound]:
        """Try kept events again for which a key may have come, and tell of those that wait long."""
        kept, now_ms = sealed_in(self.marks), self.clock.now_ms()
        if self._encryption is None or not kept:
            return []
        changed = frozenset(answer.device_lists.changed)
        found: list[Inbound] = []
        for each in kept:
            is_over = now_ms - each.since_ms >= KEPT_MS
            may_open = each.room in rooms or each.sender in changed or not self._has_tried_sealed
            if may_open or is_over:
                opened = await self._open(each, is_over=is_over)
                if opened is not None:
                    found += opened
                    marks[each.chat] = ""
        self._has_tried_sealed = True
        waiting = [each for each in kept if marks.get(each.chat) != ""]
        due = due_to_be_told(waiting, now_ms)
        for room in {each.room for each in due}:
            await self._tell_of_sealed(room, [each for each in due if each.room == room])
        marks |= {each.chat: replace(each, is_told=True).mark for each in due}
        return found

    async def _open(self, sealed: Sealed, *, is_over: bool) -> Sequence[Inbound] | None:
        """What a kept event says; None if it cannot be opened yet."""
        path = room_path(sealed.room, "event", sealed.event_id)
        try:
            event = event_of(await self.api.call_patiently("GET", path))
        except MatrixRefused as refused:
            return [] if refused.status in GONE else None
        if event is None:
            return []
        again = dict[str, str]()
        found = await self._read(sealed.room, [event], again)
        if not again:
            return found
        if not is_over:
            return None
        nothing = self.reader.read(sealed.room, event, await self.rooms.facts(sealed.room))
        return [] if nothing is None else [nothing]

    async def _tell_of_sealed(self, room: str, due: Sequence[Sealed]) -> None:
        # The same words have the same key, so a kill before the marks does not say them twice.
        ids = " ".join(each.event_id for each in due)
        key = f"sealed-{hashlib.sha256(ids.encode()).hexdigest()[:12]}"
        words: dict[str, object] = {"msgtype": "m.notice", "body": words_for(len(due))}
        try:
            kind, content = await self.rooms.dressed(room, MESSAGE, words)
            await self.api.call_patiently("PUT", room_path(room, "send", kind, key), content)
        except MatrixRefused as refused:
            log.warning("sealed_not_told", channel=self.options.name, reason=str(refused))

    def _acknowledge(self, batch: Sequence[Inbound]) -> None:
        """Show people what was read, and say where we cannot read. It is stored already."""
        newest = {inbound.route.chat: inbound for inbound in batch}
        for room, inbound in newest.items():
            self.show(partial(self._receipt, room, inbound.external_id))
        sealed = {each.route.chat: each for each in batch if each.ignored == "encrypted"}
        if self._encryption is None:
            for room, inbound in sealed.items():
                self.show(partial(self._tell_of_encryption, room, inbound.sender))

    async def _receipt(self, room: str, event_id: str) -> None:
        await self.api.call("POST", room_path(room, "receipt", "m.read", event_id), {})

    async def _tell_of_encryption(self, room: str, sender: str) -> None:
        if await self.options.is_allowed(sender):
            await tell_of_encryption(self.api, self.options.user, room)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RoomHistory:
    """Rooms behind the place from which an answer was asked for, read forward to their ends."""

    session: MatrixSession
    since: str

    async def after(self, chat: str, place: str) -> HistoryPage:
        token = place.removeprefix(f"{self.since}|")
        try:
            page = await self.session.page(chat, token, "f")
        except MatrixRefused as refused:
            if refused.status != 403:
                raise NoAnswer(str(refused)) from refused
            page = MessagesAnswer()  # we are not in the room any more
        # A page without events is not the end of a room: what it skipped may be of other kinds.
        is_last = page.end is None or page.end == token
        return HistoryPage(
            messages=await self.session.read_page(chat, page),
            place=place if is_last else f"{self.since}|{page.end}",
            is_last=is_last,
        )
