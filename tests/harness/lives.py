"""An operator who starts the gateway again whenever it ends, and the people who talk to it."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx2
from anyio import create_task_group
from anyio.abc import TaskGroup

from tests.harness.client import Client, Event, Operator
from tests.harness.disk import killed_at_change, killed_at_flush
from tests.harness.holds import Hold
from tests.harness.http import connection
from tests.harness.moved_clock import Wall
from tests.harness.polling import WITHIN_S, until, until_asked
from tests.harness.process import KILLED, GatewayProcess
from tests.harness.rows import Rows, read_rows
from tests.harness.seen import Seen, read_seen
from tests.harness.watched import AHEAD, ROOT, SEEN, watched_command

STOPPED = "stopped"
"""A planned end: it is asked to stop, and does."""
KILLED_BY_HAND = "killed"
"""A planned end: the test kills it at a moment of its choice."""
AT_FLUSH = "flush:"
"""A planned end, with a number behind it: the kernel kills it when it is about to flush for the
n-th time."""

AT_CHANGE = "change:"
"""A planned end, with a way and a number behind it, `change:torn:40`: it is killed before, after or
in the middle of the n-th call that changes the home."""

LAST_WORDS = "/help"

FOR_EVER_S = 3_600.0
DOWN_S = 31
"""How long it is down between two lives, by its own clock: no test waits for the pause before a
dead turn is tried again."""


async def _nothing() -> None:
    return


@dataclass(slots=True)
class Lives:
    """A gateway whose lives end as planned, one after the other; the last one goes on. An end is
    a crash point, STOPPED, KILLED_BY_HAND, AT_FLUSH with a number, or AT_CHANGE with more."""

    gateway: GatewayProcess
    ends_planned: Sequence[str]
    tasks: TaskGroup
    folder: Path | None = None
    """The records of a watched gateway, and how far its clock is ahead."""
    while_down: Callable[[], Awaitable[None]] = _nothing
    """What happens between two lives."""
    remains: list[Rows] = field(default_factory=list)
    """The rows on the disk after each end."""
    verbs_seen: list[Counter[str]] = field(default_factory=list)
    """The verbs that the store was asked for at each end."""
    people: dict[str, Client] = field(default_factory=dict)
    wall: Wall | None = None
    stops: int = 0
    """How often it ended on an unplanned request."""
    is_stopped: bool = False
    """Whether this life was asked to stop."""

    @property
    def home(self) -> Path:
        return self.gateway.home

    @property
    def seen(self) -> Seen | None:
        """What its model and its tools saw, if it is watched."""
        return None if self.folder is None else read_seen(self.folder / SEEN)

    def is_asked_for(self, verb: str) -> bool:
        """Whether the store of a watched one was ever asked for the verb."""
        seen = self.seen
        return seen is not None and seen.verbs[verb] > 0

    def hold(self, point: str) -> Hold:
        """Hold a watched one at a point (tests/harness/holds.py) until that is lifted."""
        assert self.folder is not None, "it is not watched"
        return Hold(self.folder, point)

    async def comes_to(self, hold: Hold, times: int = 1) -> None:
        """Wait until a held point was reached so often, over all lives."""

        def look() -> bool:
            seen = self.seen
            return seen is not None and seen.held[hold.point] >= times

        what = f"{times} times at {hold.point}"
        await until(look, what, otherwise=lambda: self.gateway.log[-3000:])

    def verbs_of_last_lives(self, ended: int) -> set[str]:
        """The verbs of the store after the first so many lives."""
        seen = self.seen
        assert seen is not None, "it is not watched"
        before = self.verbs_seen[ended - 1] if ended else Counter()
        return set(seen.verbs - before)

    @property
    def address(self) -> str | None:
        return self.gateway.address

    @property
    def token(self) -> str:
        return self.gateway.token

    def person(self, chat: str) -> Client:
        """A follower of the chat, from its start for as long as the gateway has lives."""
        person = self.people[chat] = Client(self, chat)
        self.tasks.start_soon(person.keep_following)
        return person

    def operator(self) -> Operator:
        return Operator(self)

    async def all_ends(self) -> None:
        """Wait until every planned end has come, and a gateway runs again."""
        planned = list(self.ends_planned)
        await until(
            lambda: len(self.remains) - self.stops == len(planned) and self.address is not None,
            f"the gateway ends at each of {planned}",
            otherwise=lambda: f"it ended {len(self.remains)} times. {self.gateway.log[-3000:]}",
        )

    async def finish(self) -> dict[str, list[Event]]:
        """Wait for the planned ends and until nothing is left to do, then hear the last words in
        every chat. Returns the events of each chat for a new follower, from its start."""
        await self.all_ends()
        await until_asked(self._is_quiet, "the gateway comes to rest")
        told = {}
        for chat, person in self.people.items():
            ack = await person.say(LAST_WORDS, "last-words")
            is_last = partial(is_of, cause=f"command:{ack.message.removeprefix('m')}")
            await person.sees(is_last, "the last words")
            told[chat] = await person.told_from_start(is_last)
        await until_asked(self._is_quiet, "the gateway comes to rest")
        self.gateway.kill()
        return told

    async def _is_quiet(self) -> bool:
        """No turn runs, nothing waits and nothing is owed."""
        address = self.address
        if address is None:
            return False
        async with connection(address, self.token) as http:
            try:
                status = (await http.get("/api/v1/status")).json()
            except httpx2.TransportError:
                return False
        left = [*status["turns"].values(), status["inbox_waiting"], status["outbox_unsettled"]]
        return not any(left)

    async def keep_up(self) -> None:
        """Start it, and start it again whenever it has ended as planned, or was stopped."""
        for end in self.ends_planned:
            expected = 0 if end == STOPPED else KILLED
            self._start(end)
            while (code := await self._ends()) == 0 != expected and self.is_stopped:
                await self._is_stopped_again()
                self._start(end)
            assert code == expected, f"it ended with {code} at {end}:\n{self.gateway.log[-4000:]}"
            await self._is_down()
        self.gateway.start()
        while await self._ends(within_s=FOR_EVER_S) == 0 and self.is_stopped:
            await self._is_stopped_again()
            self.gateway.start()

    async def _ends(self, within_s: float = WITHIN_S) -> int:
        return await self.gateway.wait_exit(within_s)

    async def _is_stopped_again(self) -> None:
        self.is_stopped = False
        self.stops += 1
        await self._is_down()

    async def _is_down(self) -> None:
        await self.while_down()
        self._time_passes()
        self.remains.append(read_rows(self.gateway.home))

    def stop(self) -> None:
        """Ask it to stop, planned or not: it is started again."""
        self.is_stopped = True
        self.gateway.terminate()

    def _time_passes(self) -> None:
        seen = self.seen
        if self.folder is not None and seen is not None:
            self.wall = self.wall or Wall(self.folder / AHEAD)
            self.wall.move(seconds=DOWN_S)
            self.verbs_seen.append(seen.verbs)

    def _start(self, end: str) -> None:
        if end.startswith(AT_FLUSH):
            self.gateway.start(prefix=killed_at_flush(int(end.removeprefix(AT_FLUSH))))
        elif end.startswith(AT_CHANGE):
            how, _, number = end.removeprefix(AT_CHANGE).partition(":")
            self.gateway.start(prefix=killed_at_change(self.gateway.home, how, int(number)))
        elif end in (STOPPED, KILLED_BY_HAND):
            self.gateway.start()
        else:
            self.gateway.start(crash_at=end)


def is_of(event: Event, cause: str) -> bool:
    return bool(event.fields.get("cause") == cause)


@asynccontextmanager
async def lives(
    home: Path,
    ends: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    loads: Sequence[str] = (),
) -> AsyncIterator[Lives]:
    """A gateway on `home` that ends at each of `ends` in turn; it is gone after the block. The
    modules in `loads` are large, and imported once for all lives."""
    folder = home.with_name(f"{home.name}.seen")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [*watched_command(folder), "run", "--home", str(home)]
    env = {"PYTHONPATH": str(ROOT), **(env or {})}
    gateway = GatewayProcess(home, env=env, command=command, loads=loads)
    try:
        async with create_task_group() as tasks:
            life = Lives(gateway, ends, tasks, folder)
            tasks.start_soon(life.keep_up)
            yield life
            tasks.cancel_scope.cancel()
    finally:
        gateway.bury()
