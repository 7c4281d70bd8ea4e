"""Accounts that one gateway alone has: of all that share a database, one receives and sends.

The row of the account names the owner, and every change of it raises the epoch. What was received
under an earlier epoch is not stored: the platform brings it again to the next owner. An owner that
is buried, or gives the account back, has no further right to it.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

import structlog
from anyio import CancelScope, create_task_group, move_on_after, sleep

from koboshi.domain.ids import ChannelName, WorkerId
from koboshi.ports.channel import Channel
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.ports.wakeups import ACCOUNTS, OUTBOX, Wakeups
from koboshi.runtime.drain import Drain
from koboshi.runtime.trust import Trust

log = structlog.get_logger()

TAKE_SECONDS_MAX = 1.0
"""A taker waits for up to so long, by chance: not all ask at once."""
DOWN_SECONDS = 60.0
"""An owner whose channel is down for so long lets another gateway try."""
SENDS_SECONDS_MAX, SENDS_LOOK_SECONDS = 5.0, 0.02
GIVE_SECONDS_MAX = 5.0


Receive: TypeAlias = Callable[[Channel], Coroutine[object, object, None]]


@dataclass(slots=True, kw_only=True)
class Owning:
    store: Store
    wakeups: Wakeups
    clock: Clock
    worker_id: WorkerId
    trust: Trust
    drain: Drain
    poll_seconds: float
    chance: Random = field(default_factory=Random)
    down_seconds: float = DOWN_SECONDS
    on_taken_elsewhere: Callable[[], None] = lambda: None
    """Called when another gateway has an account: this one is as ready as it can be."""
    sends_under_way: Callable[[ChannelName], int] = lambda _: 0
    exclusive: set[ChannelName] = field(default_factory=set)
    _epochs: dict[ChannelName, int] = field(default_factory=dict)
    _resting: dict[ChannelName, float] = field(default_factory=dict)
    """Until when an account that was given back is left to the others."""

    def owns(self, name: ChannelName) -> bool:
        """Whether this gateway receives and sends on a channel."""
        return name not in self.exclusive or name in self._epochs

    def epoch_of(self, name: ChannelName) -> int | None:
        return self._epochs.get(name)

    async def keep(self, channel: Channel, receive: Receive) -> None:
        """Receive on a channel whenever its account is ours, until cancelled."""
        name = channel.name
        self.exclusive.add(name)
        while True:
            self._epochs[name] = await self._take(name)
            log.info("account_taken", channel=name, epoch=self._epochs[name])
            self.wakeups.hint(OUTBOX)
            try:
                async with create_task_group() as tasks:
                    tasks.start_soon(receive, channel)
                    why = await self._until_lost(channel)
                    tasks.cancel_scope.cancel()
            finally:
                epoch = self._epochs.pop(name)
            log.info("account_left", channel=name, why=why)
            await self._give_back(name, epoch)

    async def _take(self, name: ChannelName) -> int:
        while True:
            seen = self.wakeups.count(ACCOUNTS)
            is_free = not self.drain.is_begun and self.trust.is_held
            if is_free and self.clock.monotonic() >= self._resting.get(name, 0.0):
                epoch = await self.store.accounts.take(name, self.worker_id)
                if epoch is not None:
                    return epoch
            self.on_taken_elsewhere()
            await self.wakeups.wait(ACCOUNTS, self.poll_seconds, since=seen)
            await sleep(self.chance.uniform(0, min(TAKE_SECONDS_MAX, self.poll_seconds)))

    async def _until_lost(self, channel: Channel) -> str:
        """Return when the account must go to another, and why."""
        down_since: float | None = None
        while True:
            if not self.trust.is_held:
                return "trust"
            now = self.clock.monotonic()
            if channel.trouble is None:
                down_since = None
            elif down_since is None:
                down_since = now
            is_down = down_since is not None and now - down_since >= self.down_seconds
            if (is_down or self.drain.is_begun) and await self.store.workers.is_served_beside():
                if is_down:
                    self._resting[channel.name] = now + self.down_seconds
                return "down" if is_down else "drain"
            await self.wakeups.wait(ACCOUNTS, self.poll_seconds)

    async def _give_back(self, name: ChannelName, epoch: int) -> None:
        """First what is being sent gets its outcome. Without trust nothing is ours to change."""
        until = self.clock.monotonic() + SENDS_SECONDS_MAX
        while self.sends_under_way(name) and self.clock.monotonic() < until:
            await self.wakeups.wait(OUTBOX, SENDS_LOOK_SECONDS)
        if self.trust.is_held:
            with CancelScope(shield=True), move_on_after(GIVE_SECONDS_MAX):
                await self.store.accounts.give_back(name, self.worker_id, epoch)
