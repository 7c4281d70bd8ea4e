"""Events from Slack into the inbox: stored, then acknowledged.

Theory of operation. Slack tells of each event over one of our connections, and again a few times if
it is not acknowledged; after some minutes it gives up. The history of conversations it keeps.

* An envelope is acknowledged behind the commit that holds its event. A repeat is taken like a first
  copy, whatever its number: the first may be the lost one. The same message has the same key.
* The watermark of a conversation stands for everything before it, and moves in the commit of what
  it stands for. The cursor does the same for all conversations together.
* Whenever there was a time without a connection, conversations are read from their watermarks on,
  those without one from the cursor. The connection is open before the list of conversations is
  asked for, so what is said later comes over it.
* While a conversation is behind, live messages of it are held, and not acknowledged: they are
  stored behind the older ones, and Slack's repeat is acknowledged then. Such a conversation is read
  next.
* A first connection takes nothing from before.
* Slack renews connections and says so. The new one is open before the old one ends, so that this is
  no gap. Any other end is one: the channel connects anew.
* Where Slack calls us, no connection tells of a gap, and a later event may follow a lost one. So
  what comes live moves no watermark there. The history alone does, which is read at the start, now
  and then, and where Slack had to try for long.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog
from anyio import CapacityLimiter, Event, create_task_group, move_on_after, sleep
from anyio.abc import TaskGroup

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.common.catch_up import CatchUp
from koboshi.channels.common.pacing import Bucket
from koboshi.channels.common.reachable import Reachable
from koboshi.channels.common.watched import ConnectionSilent
from koboshi.channels.slack.api import Answered, SlackApi
from koboshi.channels.slack.best_effort import SlackAsides
from koboshi.channels.slack.catching import SlackChatHistory
from koboshi.channels.slack.codec import SlackReader
from koboshi.channels.slack.find import Finder
from koboshi.channels.slack.history import SlackHistoryReader, micros_of, ts_of
from koboshi.channels.slack.linking import Links
from koboshi.channels.slack.names import PeopleNames
from koboshi.channels.slack.options import SlackOptions
from koboshi.channels.slack.outcomes import NOT_LET_IN, RATE_LIMITED
from koboshi.channels.slack.places import ChatPlace, ChatPlaces, place_in
from koboshi.channels.slack.request_url import RequestUrl
from koboshi.channels.slack.types import SlackBotReply, SlackConversationPage, SlackReply
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.hearing import Hearing
from koboshi.domain.inbox import EntryState
from koboshi.ports.channel import Accept, Inbound, Receipt, Watermarks
from koboshi.ports.clock import Clock

log = structlog.get_logger()

LISTED_MAX = 200
KINDS = "public_channel,private_channel,mpim,im"
PAGES_PER_SECOND = 50 / 60
PAGES_AT_ONCE = 50
"""What Slack allows to apps of one's own; others are told to wait."""
SWEEP_SECONDS = 3_600.0
ASIDES_MAX = 8
SEEN = "eyes"
"""Shown on a message that has to wait for its turn."""
CAN_READ_KEYS = "metadata.message:read"


@dataclass(slots=True, kw_only=True)
class SlackReceiving(Reachable):
    in_words = (*Reachable.in_words, ConnectionSilent)

    api: SlackApi
    options: SlackOptions
    clock: Clock
    asides: SlackAsides
    history: SlackHistoryReader
    finder: Finder
    watermarks: Watermarks
    can_find: bool = False
    """The app may read what we have written beside our messages."""
    _heard_ms: int | None = None
    _catch_up: CatchUp | None = None
    _limiter: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(ASIDES_MAX))

    @property
    def hearing(self) -> Hearing:
        behind = self._catch_up
        return Hearing(
            heard_ms=self._heard_ms,
            chats_behind=0 if behind is None else behind.chats_behind,
            behind_since_ms=None if behind is None else behind.since_ms,
        )

    async def run(self, cursor: str | None, accept: Accept) -> None:
        """Receive until cancelled. Raises ChannelUnusable, NotReached, NoAnswer."""
        with self.connecting():
            try:
                await self._run(cursor, accept)
            finally:
                self._catch_up = None

    async def _run(self, cursor: str | None, accept: Accept) -> None:
        reader = await self._introduce()
        await accept([])
        names = PeopleNames(api=self.api, clock=self.clock)
        async with create_task_group() as tasks:
            taking = Taking(
                receiving=self,
                reader=reader,
                accept=accept,
                names=names,
                tasks=tasks,
                moves_marks=not self.options.is_called,
            )

            if self.options.is_called:
                tasks.start_soon(self._sweep, taking)
                await RequestUrl(
                    options=self.options,
                    clock=self.clock,
                    take=taking.take_call,
                    hear=self.hear,
                    on_missed=taking.miss,
                ).serve(lambda: self._begin(taking, cursor))
            else:
                await Links(
                    api=self.api,
                    app_token=self.options.app_token,
                    app_id=await self._app_of(reader.bot_id),
                    clock=self.clock,
                    take=taking.take_all,
                    hear=self.hear,
                    check=self.require,
                ).keep(lambda: self._begin(taking, cursor))

    def hear(self) -> None:
        """Slack has said something."""
        self._heard_ms = self.clock.now_ms()

    async def _introduce(self) -> SlackReader:
        """Who we are."""
        answered = await self.api.write("auth.test", {})
        me = self.require(answered, "auth.test")
        self.finder.me = me.user_id
        self.can_find = CAN_READ_KEYS in answered.scopes
        log.info("slack_connected", channel=self.options.name, team=me.team, bot=me.user_id)
        return SlackReader(
            channel=self.options.name,
            me=me.user_id,
            bot_id=me.bot_id,
            chars_max=self.options.message_chars_max,
            commands=self.options.commands,
        )

    async def _app_of(self, bot_id: str) -> str:
        """The app that a bot is of; empty if Slack does not tell it to us."""
        with suppress(NoAnswer):
            answered = await self.api.read("bots.info", {"bot": bot_id})
            return answered.read(SlackBotReply).bot.app_id
        return ""

    async def _begin(self, taking: "Taking", cursor: str | None) -> None:
        """Slack can tell us of what is said from now on: see what was said before."""
        stored = await self.watermarks(self.options.account)
        for chat, token in stored.items():
            taking.places.load(chat, token)
        history = SlackChatHistory(history=self.history, reader=taking.reader, places=taking.places)
        catch_up = CatchUp(
            history=history,
            accept=taking.accept,
            clock=self.clock,
            pace=_Pace(self.clock).wait,
        )
        place = None if cursor is None else place_in(cursor)
        if place is None:
            # A first connection: what was said before is not for us. That conversations can be
            # listed is tried all the same, before there is something to catch up with.
            taking.cursor = taking.first = ts_of(self.api.now_s)
            await self._conversations()
            await taking.accept([], taking.cursor_token)
        else:
            taking.cursor, (taking.first, *_) = place.newest, (*place.threads, place.newest)
            history.since = micros_of(taking.first)
            catch_up.add(await self._behind(taking))
        taking.catch_up = self._catch_up = catch_up
        taking.tasks.start_soon(catch_up.run)
        self.hear()
        self.trouble = None

    async def _behind(self, taking: "Taking") -> dict[str, str]:
        """Every conversation with the place that it was read to, the latest one first."""
        since = ChatPlace(newest=taking.cursor)
        places = {chat: taking.places.get(chat) or since for chat in await self._conversations()}
        latest_first = sorted(places, key=lambda chat: -micros_of(places[chat].newest))
        return {chat: places[chat].token for chat in latest_first}

    async def _sweep(self, taking: "Taking") -> None:
        """Look now and then for what Slack could not tell us."""
        while True:
            with move_on_after(SWEEP_SECONDS):
                await taking.has_missed.wait()
            taking.has_missed = Event()
            await self._look_again(taking)

    async def _look_again(self, taking: "Taking") -> None:
        """Read every conversation from where its history was last read."""
        catch_up = taking.catch_up
        if catch_up is None:
            return
        begun = ts_of(self.api.now_s)
        catch_up.add(await self._behind(taking))
        await catch_up.run()
        if not catch_up.chats_behind:
            taking.cursor = max(taking.cursor, begun, key=micros_of)
            await taking.accept([], taking.cursor_token)

    async def _conversations(self) -> list[str]:
        """The conversations that the app is in."""
        found: list[str] = []
        cursor = ""
        while True:
            asked: dict[str, object] = {"types": KINDS, "limit": LISTED_MAX}
            asked |= {"exclude_archived": True, "cursor": cursor}
            answered = await self.api.read("users.conversations", asked)
            self.require(answered, "users.conversations")
            page = answered.read(SlackConversationPage)
            found += [each.id for each in page.channels]
            cursor = page.next_cursor
            if not cursor:
                return found

    def require(self, answered: Answered, method: str) -> SlackReply:
        """Raises ChannelUnusable for a token that is no good, NoAnswer for anything else."""
        return required(answered, method, self.options.name)

    def say_aside(
        self, batch: Sequence[Inbound], receipts: Sequence[Receipt], tasks: TaskGroup
    ) -> None:
        """Show that messages wait, without waiting for it."""
        for inbound, receipt in zip(batch, receipts, strict=True):
            is_new = receipt.state is EntryState.WAITING and not receipt.is_duplicate
            if is_new and inbound.words.anchor and inbound.words.question is None:
                chat, stamp = inbound.route.chat, inbound.words.anchor
                seen: dict[str, object] = {"channel": chat, "timestamp": stamp, "name": SEEN}
                tasks.start_soon(self._aside, chat, seen)

    async def _aside(self, chat: str, seen: dict[str, object]) -> None:
        async with self._limiter:
            await self.asides.show("reactions.add", chat, seen)


@dataclass(slots=True, kw_only=True)
class Taking:
    """Stores what comes live, in order, with how far each conversation was read."""

    receiving: SlackReceiving
    reader: SlackReader
    accept: Accept
    names: PeopleNames
    tasks: TaskGroup
    moves_marks: bool = True
    """What comes live stands for everything before it."""
    places: ChatPlaces = field(default_factory=ChatPlaces)
    catch_up: CatchUp | None = None
    cursor: str = ""
    """The newest message of all."""
    first: str = ""
    """When the app was first connected: what was said before is not for us."""

    has_missed: Event = field(default_factory=Event)
    """Slack could not tell us of everything."""

    def miss(self) -> None:
        self.has_missed.set()

    @property
    def cursor_token(self) -> str:
        return ChatPlace(newest=self.cursor, threads=(self.first,)).token

    async def take_call(self, kind: str, payload: bytes) -> bool:
        """Store what a call of Slack says. Returns whether it is stored, or need not be."""
        (is_taken,) = await self.take_all([(kind, payload)])
        return is_taken

    async def take_all(self, payloads: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Store what these say to us. Returns for each whether Slack may forget it: it is stored,
        or there is nothing to store."""
        assert self.catch_up is not None, "nothing is taken before the catch-up has begun"
        read = [self.reader.read(kind, payload) for kind, payload in payloads]
        named = [None if each is None else await self._named(each) for each in read]
        held = [each is not None and self._is_held(each) for each in named]
        found = [(each, is_held) for each, is_held in zip(named, held, strict=True) if each]
        # What is no message has no older words to wait for: presses, commands.
        aside = [each for each, is_held in found if not is_held and self._is_behind(each)]
        arrived = [
            (each, self._mark(each, is_held))
            for each, is_held in found
            if is_held or not self._is_behind(each)
        ]
        free = [each for each, is_held in found if not is_held and not self._is_behind(each)]
        if arrived:
            # No await since the look at what is behind: what is free there is stored here.
            cursor = self.cursor_token if self.moves_marks else None
            receipts = await self.catch_up.take(arrived, cursor)
            self.receiving.say_aside(free, receipts, self.tasks)
        if aside:
            await self.accept(aside)
        return [not is_held for is_held in held]

    async def _named(self, inbound: Inbound) -> Inbound:
        if inbound.ignored or not inbound.is_addressed:
            return inbound
        known = await self.names.person(inbound.sender)
        name = inbound.sender_name or known.shown
        return replace(inbound, sender_name=name, zone=known.tz or "")

    def _is_behind(self, inbound: Inbound) -> bool:
        assert self.catch_up is not None
        return self.catch_up.is_behind(inbound.route.chat)

    def _is_held(self, inbound: Inbound) -> bool:
        """Whether its conversation has to be read to its end first; that is done next."""
        assert self.catch_up is not None
        if not self._is_behind(inbound) or not (_stamp_of(inbound) or inbound.edits):
            return False
        self.catch_up.hasten(inbound.route.chat)
        return True

    def _mark(self, inbound: Inbound, is_held: bool) -> str:
        """The watermark of a conversation behind a message; empty for what is no message."""
        stamp = _stamp_of(inbound)
        if not stamp:
            return ""
        thread = inbound.route.thread if inbound.is_addressed else ""
        if not self.moves_marks:
            self.places.note(inbound.route.chat, thread)
            return ""
        if not is_held:
            self.cursor = max(self.cursor, stamp, key=micros_of)
        return self.places.move(inbound.route.chat, stamp, thread).token


def _stamp_of(inbound: Inbound) -> str:
    """The time stamp of a message; empty for anything else."""
    stamp = inbound.external_id.partition("/")[2]
    is_message = not inbound.ignored and not inbound.edits and stamp == inbound.words.anchor
    return stamp if is_message else ""


class _Pace:
    """How fast pages of the history are asked for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bucket = Bucket(PAGES_PER_SECOND, PAGES_AT_ONCE, PAGES_AT_ONCE, clock.monotonic())

    async def wait(self) -> None:
        wait_s = self._bucket.take(self._clock.monotonic())
        if wait_s:
            await sleep(wait_s)


def required(answered: Answered, method: str, name: str) -> SlackReply:
    """Raises ChannelUnusable for a token that is no good, NoAnswer for anything else."""
    reply = answered.read(SlackReply)
    if reply.ok:
        return reply
    if reply.error in NOT_LET_IN:
        raise ChannelUnusable(
            f"Slack refuses the token of {name} in {method} ({reply.error}); "
            "api.slack.com/apps has the right one"
        )
    if reply.error == "missing_scope":
        raise ChannelUnusable(
            f"the app of {name} lacks the scope {reply.needed}; add it at api.slack.com/apps and "
            "install the app again"
        )
    if reply.error == RATE_LIMITED:
        raise NoAnswer(f"{method}: asked too often; again in {answered.wait_ms // 1000} s")
    raise NoAnswer(f"{method}: {reply.error}")
