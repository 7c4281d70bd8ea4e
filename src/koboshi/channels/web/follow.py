"""Followers: connections that are told what happens in a chat, from the journal, as it happens.

The journal is the truth and each follower reads it by itself, from its own place. A hint only
says that it may be worth looking again, so none that is lost can cost an event.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from anyio import CancelScope, Event, create_task_group, current_time, move_on_after, sleep
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from koboshi.channels.web.codec import (
    Unacceptable,
    draft_frame,
    encode_event,
    hint_frame,
    place_frame,
    resync_frames,
    typing_frame,
)
from koboshi.channels.web.limits import WebLimits
from koboshi.domain.ids import ChannelName, TurnId
from koboshi.domain.route import Route
from koboshi.ports.views import Views
from koboshi.ports.wakeups import JOURNAL, Wakeups

END = 2**62
"""Behind every journal line."""


class Follower:
    """One connection. What it has not been told lies in the journal, behind its place there."""

    def __init__(self, chat: str | None, thread: str | None) -> None:
        self.chat = chat
        self.thread = thread
        self.is_behind = True
        self.is_dismissed = False
        self._passing: dict[str, bytes] = {}
        self._stirred = Event()

    def stir(self) -> None:
        """The journal may have grown."""
        self.is_behind = True
        self._stirred.set()

    def show(self, thread: str, frame: bytes) -> None:
        """Show something that is not in the journal; only the newest for each thread is kept."""
        self._passing[thread] = frame
        self._stirred.set()

    def dismiss(self) -> None:
        self.is_dismissed = True
        self._stirred.set()

    def take_passing(self) -> bytes:
        frames = b"".join(self._passing.values())
        self._passing.clear()
        return frames

    def follows(self, thread: str) -> bool:
        return self.thread is None or self.thread == thread

    async def rest(self, at_most_s: float) -> bool:
        """Wait until there may be something to do. Returns False if the time was up before."""
        with move_on_after(at_most_s) as limit:
            await self._stirred.wait()
        self._stirred = Event()
        return not limit.cancelled_caught


class Followers:
    """All followers of one channel."""

    def __init__(self, followers_max: int) -> None:
        self._followers_max = followers_max
        self._followers: set[Follower] = set()
        self._by_chat: dict[str, set[Follower]] = {}
        self._is_over = False
        self.newest = 0
        """The newest journal line that was seen."""

    @contextmanager
    def joined(self, chat: str | None, thread: str | None) -> Iterator[Follower]:
        """One more follower, of a chat or of everything. Raises Unacceptable when there are too
        many, or the channel ends."""
        if self._is_over:
            message = "the gateway is about to stop"
            raise Unacceptable(503, "stopping", message, retry_after_s=1)
        if len(self._followers) >= self._followers_max:
            message = f"{self._followers_max} connections follow already"
            raise Unacceptable(503, "too-many-followers", message, retry_after_s=5)
        follower = Follower(chat, thread)
        self._followers.add(follower)
        if chat is not None:
            self._by_chat.setdefault(chat, set()).add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            if chat is not None:
                self._by_chat[chat].discard(follower)
                if not self._by_chat[chat]:
                    del self._by_chat[chat]

    def show_typing(self, route: Route, now_ms: int) -> None:
        self._show(route, "typing", typing_frame(route, now_ms))

    def show_draft(self, route: Route, turn_id: TurnId, text: str, now_ms: int) -> None:
        self._show(route, "draft", draft_frame(route, turn_id, text, now_ms))

    def _show(self, route: Route, kind: str, frame: bytes) -> None:
        for follower in self._by_chat.get(route.chat, ()):
            if follower.follows(route.thread):
                follower.show(f"{kind}:{route.thread}", frame)

    def dismiss(self) -> None:
        """End all streams: the channel ends."""
        self._is_over = True
        for follower in self._followers:
            follower.dismiss()

    async def stir(
        self,
        views: Views,
        channel: ChannelName,
        wakeups: Wakeups,
        poll_s: float,
        lag_s: float | None = None,
    ) -> None:
        """Stir those in whose chat something has happened, until cancelled. One looks for all, so
        that a commit costs the same however many follow.

        Lines of several gateways are not committed in the order of their numbers, except within a
        chat. So with `lag_s` chats are looked at again for so long after a line of theirs."""
        # A new follower reads from its own position first, so nothing before this moment matters.
        place, _ = await views.chats_touched(channel, after=END)
        places, looked = deque([(current_time(), place)]), current_time()
        while True:
            seen = wakeups.count(JOURNAL)
            place, chats = await views.chats_touched(channel, after=place)
            if lag_s is not None and current_time() - looked >= poll_s:
                looked = current_time()
                while len(places) > 1 and places[1][0] <= looked - lag_s:
                    places.popleft()
                _, again = await views.chats_touched(channel, after=places[0][1])
                chats |= again
                places.append((looked, place))
            for chat in chats:
                for follower in self._by_chat.get(chat, ()):
                    follower.stir()
            if place != self.newest:
                self.newest = place
                for follower in self._followers:
                    if follower.chat is None:
                        follower.stir()
            await wakeups.wait(JOURNAL, poll_s, since=seen)


class EventStream(Response):
    """The answer to a client that follows a chat: it ends when the client or the channel does."""

    def __init__(
        self,
        views: Views,
        followers: Followers,
        *,
        channel: ChannelName,
        chat: str,
        thread: str | None,
        after: int,
        limits: WebLimits,
    ) -> None:
        self._views = views
        self._followers = followers
        self._channel = channel
        self._chat = chat
        self._thread = thread
        self._after = after
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        with self._followers.joined(self._chat, self._thread) as follower:
            headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async with create_task_group() as tasks:
                tasks.start_soon(_cancel_when_gone, receive, tasks.cancel_scope)
                await self._tell(follower, send)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                tasks.cancel_scope.cancel()

    async def _tell(self, follower: Follower, send: Send) -> None:
        # The place comes first, so that a client which loses us before anything has happened
        # knows where to go on.
        frames, quiet_until = await self._begin(), current_time()
        while not follower.is_dismissed:
            if frames:
                await send({"type": "http.response.body", "body": frames, "more_body": True})
                quiet_until = current_time() + self._limits.keep_alive_s
            if follower.is_behind:
                frames = await self._read(follower)
            elif not (frames := follower.take_passing()):
                left_s = quiet_until - current_time()
                rest_s = min(left_s, self._limits.look_s or left_s)
                if not await follower.rest(rest_s):
                    # Its own look, where a hint of another gateway may have been lost.
                    follower.is_behind = self._limits.look_s is not None
                    frames = place_frame(self._after) if rest_s == left_s else b""

    async def _begin(self) -> bytes:
        """The place where it begins. Where lines behind it are gone, the follower must not take
        silence for a chat in which nothing was said."""
        past = await self._views.past(
            self._channel, self._chat, after=self._after, limit=self._limits.recent_lines
        )
        if past is None:
            return place_frame(self._after)
        self._after = past.seq
        return resync_frames(past.seq, past.said, self._thread, past.at_ms)

    async def _read(self, follower: Follower) -> bytes:
        """The next page of the journal, as far as this follower wants to hear of it."""
        # Cleared before reading: what is committed while we read stirs the follower again.
        follower.is_behind = False
        events = await self._views.events(
            self._channel, self._chat, after=self._after, limit=self._limits.page_lines
        )
        if events:
            self._after = events[-1].line.seq
            follower.is_behind = True
        told = [encode_event(each) for each in events if follower.follows(each.route.thread)]
        return b"".join(each for each in told if each is not None)


class HintStream(Response):
    """The answer to a client that wants to know whether anything has happened at all."""

    def __init__(self, followers: Followers, *, limits: WebLimits) -> None:
        self._followers = followers
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        with self._followers.joined(None, None) as follower:
            headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async with create_task_group() as tasks:
                tasks.start_soon(_cancel_when_gone, receive, tasks.cancel_scope)
                while not follower.is_dismissed:
                    frame = hint_frame(self._followers.newest)
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
                    await sleep(self._limits.hint_s)
                    await follower.rest(self._limits.keep_alive_s)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                tasks.cancel_scope.cancel()


async def _cancel_when_gone(receive: Receive, scope: CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    scope.cancel()
