"""What one connection to a homeserver takes in. See `receiving.py` for how it holds together."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import quote

import msgspec
import structlog

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.common.catch_up import CatchUp, HistoryPage
from koboshi.channels.matrix.client import CLIENT, MatrixApi, MatrixRefused, room_path
from koboshi.channels.matrix.codec import (
    KINDS,
    MEMBER,
    MatrixReader,
    invited_by,
    is_new_join,
    since_invited,
    wants_target,
    with_edits,
)
from koboshi.channels.matrix.options import MatrixOptions
from koboshi.channels.matrix.refusal import tell_of_encryption
from koboshi.channels.matrix.rooms import MatrixRooms
from koboshi.channels.matrix.types import (
    InvitedRoom,
    MatrixEvent,
    MessagesAnswer,
    SyncAnswer,
    Timeline,
    event_of,
)
from koboshi.ports.channel import Accept, Inbound
from koboshi.ports.clock import Clock

log = structlog.get_logger()

PAGE_MAX = 100
BACK_PAGES_MAX = 20
"""How far before our join an invitation is looked for."""
INVITED = "invited"
"""The watermark of a room that we have joined and not read yet."""
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

    async def begin(self, answer: SyncAnswer) -> None:
        """The first connection: nothing from before is taken, but invitations are."""
        marks = await self._follow_invitations(answer)
        await self.accept([], answer.next_batch, marks)
        self.marks |= marks

    async def take(self, since: str, answer: SyncAnswer) -> None:
        """Store all that an answer brings, and then its place."""
        marks = await self._follow_invitations(answer)
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
            batch += await self._read(room, events)
            if room in self.marks or room in limited:
                marks[room] = ""
        is_time = self.clock.monotonic() - self._stored > STORED_SECONDS
        if batch or marks or (is_time and answer.next_batch != since):
            await self.accept(batch, answer.next_batch, marks)
            self._stored = self.clock.monotonic()
        self.marks = {room: mark for room, mark in (self.marks | marks).items() if mark}
        self._acknowledge(batch)

    def _is_new(self, room: str, events: Sequence[MatrixEvent]) -> bool:
        """Whether we have joined it since the last answer."""
        me = self.options.user
        return self.marks.get(room) == INVITED or any(is_new_join(event, me) for event in events)

    async def _follow_invitations(self, answer: SyncAnswer) -> dict[str, str]:
        """Join the rooms to which allowed people invite us. Returns their watermarks."""
        marks = dict[str, str]()
        for room, invited in answer.rooms.invite.items():
            if await self._follow(room, invited):
                marks[room] = INVITED
        return marks

    async def _follow(self, room: str, invited: InvitedRoom) -> bool:
        asks = invited_by(events_of(invited.invite_state.events), self.options.user)
        is_allowed = bool(asks) and await self.options.is_allowed(asks)
        try:
            if is_allowed:
                await self.api.call_patiently("POST", f"{CLIENT}/join/{quote(room, safe='')}", {})
            else:
                await self.api.call_patiently("POST", room_path(room, "leave"), {})
        except MatrixRefused as refused:
            # It was taken back, or the room is gone. One invitation must not hold up the rest.
            log.warning("invitation_failed", channel=self.options.name, reason=str(refused))
            return False
        event = "invitation_followed" if is_allowed else "invitation_declined"
        log.info(event, channel=self.options.name, room=room, by=asks)
        return is_allowed

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
        return await self._read(room, events_of(page.chunk))

    async def _read(self, room: str, events: Sequence[MatrixEvent]) -> list[Inbound]:
        found: list[Inbound] = []
        for event in with_edits(events):
            if event.type == MEMBER:
                self.rooms.forget(room)
                continue
            if event.sender == self.options.user:
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
            found = await self.api.call_patiently("GET", room_path(room, "event", event_id))
        except MatrixRefused:
            return None
        return event_of(found)

    def _acknowledge(self, batch: Sequence[Inbound]) -> None:
        """Show people what was read, and say where we cannot read. It is stored already."""
        newest = {inbound.route.chat: inbound for inbound in batch}
        for room, inbound in newest.items():
            self.show(partial(self._receipt, room, inbound.external_id))
        sealed = {each.route.chat: each for each in batch if each.ignored == "encrypted"}
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


def events_of(raws: Sequence[msgspec.Raw]) -> Sequence[MatrixEvent]:
    """The events that can be read. One that cannot is passed over: it must not stop the rest."""
    events = [event_of(raw) for raw in raws]
    if None in events:
        log.warning("events_unreadable", count=events.count(None))
    return [event for event in events if event is not None]
