"""Events from Matrix into the inbox, by `/sync`.

Theory of operation. A homeserver brings everything behind a place, `since`, and with it the next
place. That is the cursor: it is stored in the transaction of the events before it. So every event
is at each moment at the homeserver behind our cursor, in our inbox, or in both, and a crash moves
none of them: what is in both comes again and is a duplicate key.

* A room that has more news than one answer holds is *limited*: the answer has the newest events
  only. The older ones are read forward from the old place, page by page, each stored with how far
  that is (`since|place`, the room's watermark). The cursor moves when every such room is read, in
  the transaction of the newest events. After a crash in between, the same answer comes again, and
  the reading goes on at the watermark, which is good for this `since` only.
* A room that we are invited to is joined if the person who asks is allowed, else declined. What was
  said with the invitation stands before our join. The watermark `invited`, stored with the cursor
  behind the invitation, has the room read back to it once we are in.
* The first connection takes nothing from before.
* What we said ourselves is not stored.
* `trouble` is None after an answer of the homeserver. A question that is not answered in time ends
  the connection, and a new one begins at the stored cursor.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
import structlog
from anyio import CapacityLimiter, create_task_group
from anyio.abc import TaskGroup

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.common.reachable import Reachable
from koboshi.channels.matrix.client import CLIENT, MatrixApi, MatrixRefused
from koboshi.channels.matrix.codec import KINDS, MEMBER, MatrixReader
from koboshi.channels.matrix.messages import UNAUTHORIZED
from koboshi.channels.matrix.options import MatrixOptions
from koboshi.channels.matrix.rooms import MatrixRooms
from koboshi.channels.matrix.sealed import DEVICE_MARK
from koboshi.channels.matrix.session import MatrixSession
from koboshi.channels.matrix.types import SyncAnswer
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.hearing import Hearing
from koboshi.ports.channel import Accept
from koboshi.ports.clock import Clock

if TYPE_CHECKING:
    from koboshi.channels.matrix.encryption import Encryption

log = structlog.get_logger()

POLL_MS = 30_000
BAD_REQUEST = 400
SYNC_SECONDS = 45.0
"""For an answer, with the time for which the homeserver may hold it open."""
FIRST_SECONDS = 300.0
"""For the first answer, which may be long."""
TIMELINE_MAX = 50
ASIDES_MAX = 8
REMEMBERED_MS = 10 * 60_000
"""For how long every homeserver knows the key of a send. Some forget with a restart, so that an
older send is looked for first."""
DEVICE_REMEDY = (
    "a token of a login has a device; without one, each unknown send is looked for first"
)
FILTER = {
    "presence": {"types": []},
    "account_data": {"types": []},
    "room": {
        "account_data": {"types": []},
        "ephemeral": {"types": []},
        "state": {"types": [MEMBER], "lazy_load_members": True},
        "timeline": {"types": list(KINDS), "lazy_load_members": True, "limit": TIMELINE_MAX},
    },
}
"""What a homeserver brings. It is stored there, so that every question is short."""
NOTHING_BEFORE = {**FILTER, "room": {"timeline": {"limit": 1, "types": []}, "state": {"types": []}}}
"""What it brings at first: only who has invited us."""


class _Filter(msgspec.Struct, frozen=True, kw_only=True):
    filter_id: str


class _Me(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    device_id: str | None = None


class _Profile(msgspec.Struct, frozen=True, kw_only=True):
    displayname: str | None = None


@dataclass(slots=True, kw_only=True)
class MatrixReceiving(Reachable):
    in_words = (*Reachable.in_words, MatrixRefused)

    api: MatrixApi
    options: MatrixOptions
    clock: Clock
    encryption: "Encryption | None" = None
    heard_ms: int | None = None
    rooms: MatrixRooms | None = None
    """What is known of rooms, while connected."""
    _device: str = ""
    _device_since_ms: int = 0
    """When we became another device; 0 if we always were."""
    _session: MatrixSession | None = None
    _tasks: TaskGroup | None = None
    _asides: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(ASIDES_MAX))

    @property
    def knows_keys(self) -> bool:
        """Whether the homeserver tells repeats by their keys: it does for tokens that have a
        device, and for each device by itself."""
        is_steady = self.clock.now_ms() - self._device_since_ms >= REMEMBERED_MS
        return bool(self._device) and is_steady

    @property
    def hearing(self) -> Hearing:
        behind = None if self._session is None else self._session.behind
        return Hearing(
            heard_ms=self.heard_ms,
            chats_behind=0 if behind is None else behind.chats_behind,
            behind_since_ms=None if behind is None else behind.since_ms,
        )

    async def run(self, cursor: str | None, accept: Accept) -> None:
        """Receive until cancelled."""
        with self.connecting():
            try:
                async with create_task_group() as tasks:
                    self._tasks = tasks
                    await self._run(cursor, accept)
            finally:
                self._tasks = self._session = self.rooms = None

    def show(self, showing: Callable[[], Awaitable[None]]) -> None:
        """Show something beside the work, while connected. If it fails nothing is lost."""
        if self._tasks is not None:
            self._tasks.start_soon(self._show, showing)

    async def _run(self, cursor: str | None, accept: Accept) -> None:
        options = self.options
        reader = await self._introduce()
        place = f"{CLIENT}/user/{quote(options.user, safe='')}/filter"
        made = await self.api.ask_patiently(_Filter, "POST", place, body=FILTER)
        await accept([])
        marks = dict(await options.watermarks(options.user))
        stored, _, since_ms = marks.pop(DEVICE_MARK, "").rpartition(" ")
        identity = f"{self._device} -"
        if self.encryption is not None:
            identity = await self._opened(self.encryption, stored)
        self._device_since_ms = int(since_ms or 0)
        if identity != stored:
            self._device_since_ms = 0 if cursor is None else self.clock.now_ms()
            await accept([], None, {DEVICE_MARK: f"{identity} {self._device_since_ms}"})
        if self.encryption is not None:
            await self.encryption.publish()
        self.rooms = MatrixRooms(api=self.api, encryption=self.encryption)
        session = self._session = MatrixSession(
            api=self.api,
            options=options,
            clock=self.clock,
            accept=accept,
            reader=reader,
            rooms=self.rooms,
            show=self.show,
            marks=marks,
        )
        log.info("matrix_connected", channel=options.name, user=options.user)
        since = cursor
        if since is None:
            wanted = msgspec.json.encode(NOTHING_BEFORE).decode()
            answer = await self._sync(None, wanted, poll_ms=0, seconds=FIRST_SECONDS)
            await session.begin(answer)
            since = answer.next_batch
        while True:
            # Whether we are heard is not known before the first answer: it is not waited for.
            poll_ms = 0 if self.trouble else POLL_MS
            answer = await self._sync(since, made.filter_id, poll_ms=poll_ms)
            await session.take(since, answer)
            since = answer.next_batch

    async def _opened(self, encryption: "Encryption", stored: str) -> str:
        """Load the keys of our device. Returns the mark that says which one we are: it is stored
        before others are told of it. Raises ChannelUnusable."""
        if not self._device:
            raise ChannelUnusable(f"encryption needs a token of a login: {DEVICE_REMEDY}")
        await encryption.open(self._device)
        return await encryption.check_device(stored)

    async def _sync(
        self, since: str | None, wanted: str, *, poll_ms: int, seconds: float = SYNC_SECONDS
    ) -> SyncAnswer:
        query = {"filter": wanted, "timeout": str(poll_ms), "set_presence": "offline"}
        if since is not None:
            query["since"] = since
        place = f"{CLIENT}/sync"
        try:
            answer = await self.api.ask_patiently(
                SyncAnswer, "GET", place, query=query, seconds=seconds
            )
        except MatrixRefused as refused:
            if refused.status != BAD_REQUEST or since is None:
                raise
            # To begin anew would leave out, without a word, what was written in between.
            raise ChannelUnusable(
                f"{self.options.homeserver} does not know the place up to which "
                f"{self.options.name} was read ({refused}); give the account another section to "
                "begin anew: what was written in between is not read then"
            ) from None
        self.heard_ms = self.clock.now_ms()
        self.trouble = None
        return answer

    async def _introduce(self) -> MatrixReader:
        """Who we are. Raises ChannelUnusable if the token is no good, or of another account."""
        options = self.options
        try:
            me = await self.api.ask_patiently(_Me, "GET", f"{CLIENT}/account/whoami")
        except MatrixRefused as refused:
            if refused.status != UNAUTHORIZED:
                raise
            raise ChannelUnusable(
                f"{options.homeserver} refuses the token of {options.name} ({refused}); log in "
                "again and store the new one"
            ) from None
        if me.user_id != options.user:
            raise ChannelUnusable(f"the token of {options.name} is of {me.user_id}: set user to it")
        self._device = me.device_id or ""
        if not self._device:
            log.warning("matrix_without_device", channel=options.name, remedy=DEVICE_REMEDY)
        name = ""
        with suppress(MatrixRefused):
            place = f"{CLIENT}/profile/{quote(options.user, safe='')}"
            name = (await self.api.ask_patiently(_Profile, "GET", place)).displayname or ""
        return MatrixReader(
            channel=options.name,
            me=options.user,
            my_name=name,
            chars_max=options.message_chars_max,
            commands=frozenset(options.commands),
        )

    async def _show(self, showing: Callable[[], Awaitable[None]]) -> None:
        async with self._asides:
            with suppress(NotReached, NoAnswer, MatrixRefused):
                await showing()
