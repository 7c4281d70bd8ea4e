"""Events of a session, stored in their order, each batch with how far we are."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec
import structlog
from anyio import CapacityLimiter, Event, move_on_after
from anyio.abc import TaskGroup

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.discord.catching_up import ChannelHistories
from koboshi.channels.discord.changes import MessageChanges
from koboshi.channels.discord.client import DiscordApi
from koboshi.channels.discord.codec import SPOKEN, MessageReader, message_key
from koboshi.channels.discord.cursor import SessionPlace
from koboshi.channels.discord.directory import Directory
from koboshi.channels.discord.places import PRIVATE, SILENT, is_id, moment_of
from koboshi.channels.discord.said import lacks_content
from koboshi.channels.discord.types import (
    ChannelMessage,
    DiscordPlace,
    GatewayFrame,
    GoneMessages,
    GuildCreated,
    GuildStub,
    Interaction,
    ReadyEvent,
)
from koboshi.channels.discord.watermarks import ReadMarks
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.inbox import EntryState
from koboshi.domain.phrases import excerpt
from koboshi.ports.channel import NO_WATERMARKS, Accept, Inbound, Receipt
from koboshi.ports.clock import Clock

log = structlog.get_logger()

EVENTS_UNSTORED_MAX = 500
"""After so many events without words, how far we are is stored all the same."""
ANSWERS_AT_ONCE = 8
ANSWER_SECONDS = 5.0
GUILDS_SECONDS = 15.0
"""How long a new session waits for its servers. One that is out of reach is told of later."""
UNLISTED_MAX = 500
"""Threads that are not active any more, and are looked at all the same; the newest first."""
EPHEMERAL = 64
"""Only the person who asked sees it."""
SEEN_BY_US = frozenset({EntryState.WAITING, EntryState.ATTACHED, EntryState.HANDLED})
UNREADABLE = (msgspec.DecodeError, ValueError, OverflowError, RecursionError)

Shape = TypeVar("Shape")


@dataclass(slots=True)
class _Batch:
    """What one commit will hold."""

    inbounds: list[Inbound] = field(default_factory=list)
    used: dict[int, Interaction] = field(default_factory=dict)
    """Interactions by their place in the batch."""
    tokens: dict[str, str] = field(default_factory=dict)

    def drop(self, key: str) -> bool:
        """A message of this batch is gone: that it was there is kept. Returns whether it is one."""
        for number, each in enumerate(self.inbounds):
            if each.external_id == key:
                empty = replace(each.words, text="", files=())
                self.inbounds[number] = replace(each, words=empty, ignored="deleted")
                return True
        return False


@dataclass(slots=True, kw_only=True)
class EventIntake:
    api: DiscordApi
    reader: MessageReader
    marks: ReadMarks
    accept: Accept
    tasks: TaskGroup
    clock: Clock
    people: tuple[str, ...]
    may_read: Callable[[], Awaitable[bool]]
    """Whether the platform lets us read messages at all."""
    is_ours: bool = False
    """The session was begun or resumed on this connection."""
    _session: SessionPlace = field(default_factory=SessionPlace)
    _seq: int = 0
    """The newest event that was taken."""
    _stored: int | None = None
    _awaited: set[str] = field(default_factory=set)
    """Servers of a new session that were not told of yet."""
    _all_told: Event = field(default_factory=Event)
    _is_listing: bool = False
    """It is not known yet which channels are behind."""
    directory: Directory = field(init=False)
    _histories: ChannelHistories = field(init=False)
    _changes: MessageChanges = field(default_factory=MessageChanges)
    _answering: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(ANSWERS_AT_ONCE))

    def __post_init__(self) -> None:
        self.directory = Directory(api=self.api)
        self._histories = ChannelHistories(
            api=self.api, marks=self.marks, store=self._store_history, clock=self.clock
        )

    @property
    def behind(self) -> int:
        return self._histories.behind

    @property
    def behind_since_ms(self) -> int | None:
        return self._histories.since_ms

    @property
    def place(self) -> SessionPlace:
        """The session to come back to, from the newest event on that was taken."""
        session = self._session
        return SessionPlace(session=session.session, url=session.url, seq=self._seq)

    @property
    def is_whole(self) -> bool:
        """Whether nothing from before the session is missing, so that it can be the cursor."""
        is_known = self._session.is_known and not self._awaited and not self._is_listing
        return is_known and not self._histories.behind

    def stored_seq(self) -> int | None:
        return self._stored

    def follow(self, place: SessionPlace) -> None:
        """A connection begins: it resumes this session, or begins one."""
        if place.session != self._session.session:
            self._awaited, self._is_listing = set(), False
        self._session, self._seq = place, place.seq
        self._stored = place.seq if place.is_known else None
        self.is_ours = False

    async def take(self, frames: Sequence[GatewayFrame]) -> None:
        """Store what these events say, and how far we are. Until that is stored, we are not so
        far: a channel that is caught up with meanwhile stores the place before these events."""
        batch = _Batch()
        for frame in frames:
            await self._look_at(frame, batch)
        newest = max(self._seq, *(frame.seq or 0 for frame in frames))
        is_late = newest - (self._stored or 0) > EVENTS_UNSTORED_MAX
        receipts: tuple[Receipt, ...] = ()
        if batch.inbounds or batch.tokens or is_late:
            receipts = await self._commit(newest, batch.inbounds, batch.tokens)
            self._changes.remember(each for each in batch.inbounds if each.words.anchor)
        self._seq = newest
        for number, used in batch.used.items():
            self.tasks.start_soon(self._answer, used, receipts[number])

    async def _commit(
        self, seq: int, inbounds: Sequence[Inbound] = (), tokens: Mapping[str, str] = NO_WATERMARKS
    ) -> tuple[Receipt, ...]:
        """Store words, watermarks, and the session with its newest event, if it can be resumed."""
        session = self._session
        cursor = session.as_cursor(seq) if self.is_whole else None
        if not inbounds and not tokens and cursor is None:
            return ()
        receipts = await self.accept(inbounds, cursor, tokens)
        self.marks.keep(tokens)
        if cursor is not None and session.session == self._session.session:
            self._stored = max(seq, self._stored or 0)
        return receipts

    async def _store_place(self) -> None:
        """No channel is behind: the session is one to come back to."""
        if self.is_whole:
            await self._commit(self._seq)
            log.info("discord_whole", channel=self.reader.channel, seq=self._seq)

    async def _store_history(
        self, messages: Sequence[ChannelMessage], place: DiscordPlace, tokens: dict[str, str]
    ) -> None:
        mine = self.reader.me.id
        others = [each for each in messages if each.author is None or each.author.id != mine]
        whole = [await self._readable(each, place) for each in others]
        now = self._changes.as_they_are_now(whole)
        read = [self.reader.message(each, place) for each in now]
        inbounds = [each for each in read if each.ignored is None]
        await self.accept(inbounds, None, tokens)
        self.marks.keep(tokens)
        self._changes.remember(inbounds)
        edited, gone = self._changes.settle(now)
        late = [*(self.reader.edited(each, place) for each in edited), *gone]
        if late:
            await self.accept(late)

    async def _look_at(self, frame: GatewayFrame, batch: _Batch) -> None:
        raw = bytes(frame.content)
        try:
            match frame.event:
                case "READY":
                    self._begin(_read(raw, ReadyEvent))
                case "RESUMED":
                    self.is_ours = True
                case "GUILD_CREATE":
                    self._learn_guild(_read(raw, GuildCreated))
                case "GUILD_DELETE":
                    self._drop_guild(_read(raw, GuildStub))
                case "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE":
                    self.directory.places.learn(_read(raw, DiscordPlace))
                case "CHANNEL_DELETE" | "THREAD_DELETE":
                    self._forget(_read(raw, DiscordPlace).id, batch)
                case "MESSAGE_CREATE":
                    await self._message(_read(raw, ChannelMessage), batch)
                case "MESSAGE_UPDATE":
                    await self._edited(_read(raw, ChannelMessage), batch)
                case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK":
                    self._deleted(_read(raw, GoneMessages), batch)
                case "INTERACTION_CREATE":
                    await self._used(_read(raw, Interaction), batch)
                case _:
                    return
        except UNREADABLE as error:
            log.warning("discord_event_unreadable", kind=frame.event, why=str(error))
            batch.inbounds.append(self.reader.unreadable(raw, str(error)))

    def _begin(self, ready: ReadyEvent) -> None:
        url = ready.resume_gateway_url
        self._session = SessionPlace(session=ready.session_id, url=url)
        self._seq, self._stored, self.is_ours = 0, None, True
        self._awaited, self._all_told = {each.id for each in ready.guilds}, Event()
        if not self._awaited:
            self._all_told.set()
        self._is_listing = True
        # What comes now of a channel that was read before must not overtake what was missed.
        for channel_id in self.marks.places():
            self._histories.begin(channel_id)
        self.tasks.start_soon(self._list_places, ready.session_id)

    def _learn_guild(self, guild: GuildCreated) -> None:
        """A server says what its newest messages are; channels with news are behind."""
        if guild.unavailable:
            return
        joined = moment_of(guild.joined_at)
        for place in (*guild.channels, *guild.threads):
            self.directory.places.learn(place)
            if place.kind in SILENT:
                continue
            after = self.marks.after(place.id, joined)
            newest = place.last_message_id or ""
            has_news = is_id(newest) and int(newest) > after
            if has_news or not self._histories.settle(place.id):
                self._histories.begin(place.id)
                self.tasks.start_soon(self._read, place, after)
        self._drop_guild(GuildStub(id=guild.id))

    def _drop_guild(self, guild: GuildStub) -> None:
        """One that is only out of reach is told of again when it is back."""
        self._awaited.discard(guild.id)
        if not self._awaited:
            self._all_told.set()

    def _forget(self, channel_id: str, batch: _Batch) -> None:
        self.directory.places.forget(channel_id)
        if channel_id in self.marks.newest:
            batch.tokens[channel_id] = ""

    async def _message(self, message: ChannelMessage, batch: _Batch) -> None:
        if self._histories.is_behind(message.channel_id):
            self._histories.tell_of_more(message.channel_id)
            return
        place = await self.directory.place_of(
            message.channel_id, message.channel_type, message.guild_id
        )
        author = message.author
        if author is not None and author.id == self.reader.me.id:
            return
        person = author.id if place.kind == PRIVATE and author is not None else ""
        if person and self._is_listing and place.id not in self.marks.newest:
            # A private channel that is not known yet may hold more than this message.
            self.tasks.start_soon(self._read, place, self.marks.after(place.id), person)
            self._histories.begin(place.id)
            return
        message = await self._readable(message, place)
        batch.tokens[message.channel_id] = self.marks.token(place.id, int(message.id), person)
        inbound = self.reader.message(message, place)
        if inbound.ignored is None:  # else it leaves no trace but the watermark
            batch.inbounds.append(inbound)

    async def _edited(self, message: ChannelMessage, batch: _Batch) -> None:
        """Pictures that the platform adds to an address are told as edits, too."""
        author = message.author
        if author is None or author.id == self.reader.me.id or message.edited_timestamp is None:
            return
        if self._is_unread(message.channel_id, message.id):
            self._changes.hold_edit(message)
            return
        place = await self.directory.place_of(
            message.channel_id, message.channel_type, message.guild_id
        )
        inbound = self.reader.edited(message, place)
        if inbound.ignored is None:
            batch.inbounds.append(inbound)

    def _deleted(self, gone: GoneMessages, batch: _Batch) -> None:
        for message_id in filter(is_id, (gone.id, *gone.ids)):
            if self._is_unread(gone.channel_id, message_id):
                self._changes.hold_gone(message_id)
            elif not batch.drop(message_key(message_id)):
                told = self._changes.taken_back(message_id)
                batch.inbounds += [] if told is None else [told]

    def _is_unread(self, channel_id: str, message_id: str) -> bool:
        """Whether a message will come with the history of its channel."""
        is_new = is_id(message_id) and int(message_id) > self.marks.newest.get(channel_id, 0)
        return is_new and self._histories.is_behind(channel_id)

    async def _used(self, used: Interaction, batch: _Batch) -> None:
        if used.channel_id is None:
            return
        if used.channel is not None:
            self.directory.places.learn(used.channel)
        place = await self.directory.place_of(used.channel_id, None, used.guild_id)
        batch.used[len(batch.inbounds)] = used
        batch.inbounds.append(self.reader.interaction(used, place))

    async def _readable(self, message: ChannelMessage, place: DiscordPlace) -> ChannelMessage:
        """The message with what is in it. One without anything is what a bot gets that may not
        read: then ChannelUnusable is raised, and nothing is stored, so that it comes again. A
        session remembers its events as they were, so now it is asked for as it is."""
        author = message.author
        if message.kind not in SPOKEN or place.kind == PRIVATE or not lacks_content(message):
            return message
        if author is None or author.is_bot or message.webhook_id is not None:
            return message
        if not await self.may_read():
            raise ChannelUnusable(
                f"{self.reader.channel}: messages come without content: switch on Message Content "
                "Intent on the page of the bot in the Developer Portal"
            )
        return await self.directory.message_of(message)

    async def _read(self, place: DiscordPlace, after: int, person: str = "") -> None:
        await self._histories.read(place, after, person)
        await self._store_place()

    async def _list_places(self, session_id: str) -> None:
        """Find the channels that no server tells of: private ones, and threads that are not active
        any more. Those of people who wrote before are known; those of people who are allowed are
        opened."""
        marks = self.marks
        for channel_id, person in list(marks.people.items()):
            place = DiscordPlace(id=channel_id, kind=PRIVATE)
            self.tasks.start_soon(self._read, place, marks.after(channel_id), person)
        known = set(marks.people.values())
        for person in [each for each in self.people if is_id(each) and each not in known]:
            opened = await self.directory.opened(person)
            if opened is not None:
                self.tasks.start_soon(self._read, opened, marks.after(opened.id), person)
        with move_on_after(GUILDS_SECONDS):
            await self._all_told.wait()
        if self._session.session != session_id:
            return  # another session was begun, and lists again
        self._awaited.clear()
        unlisted = [each for each in self._histories.unread if each not in marks.people]
        for number, channel_id in enumerate(sorted(unlisted, key=int, reverse=True)):
            if number < UNLISTED_MAX or not self._histories.settle(channel_id):
                place = await self.directory.place_of(channel_id)
                self.tasks.start_soon(self._read, place, marks.after(channel_id))
        self._is_listing = False
        await self._store_place()

    async def _answer(self, used: Interaction, receipt: Receipt) -> None:
        """Say to the one who pressed or asked, and to no other, that it is stored. Best effort: the
        platform shows that it failed if this comes too late."""
        taken = {"content": _word_for(used, receipt), "flags": EPHEMERAL}
        path = f"/interactions/{used.id}/{used.token}/callback"
        async with self._answering:
            with suppress(NotReached, NoAnswer):
                asked = {"type": 4, "data": taken}
                await self.api.call("POST", path, asked, kind="interaction", seconds=ANSWER_SECONDS)


def _word_for(used: Interaction, receipt: Receipt) -> str:
    if receipt.refused or receipt.state not in SEEN_BY_US:
        return "You cannot answer this here."
    if used.used is not None and used.used.name:
        return f"Taken: /{excerpt(used.used.name)}"
    return "Taken."


def _read(raw: bytes, shape: type[Shape]) -> Shape:
    return msgspec.json.decode(raw, type=shape)
