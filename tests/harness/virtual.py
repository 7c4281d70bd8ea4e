"""Time that passes only when there is nothing to do.

The store works in threads of its own, so the loop must know when one of its verbs is under way:
`TrackedStore` counts them, and `counted_threads` what else works in a thread. While one does, time
stands still; when none does and nothing is ready, it jumps to the next timer. A wait of an hour
costs nothing, and no test depends on how fast the machine is.
"""

import asyncio
import selectors
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import iscoroutinefunction
from typing import Any, cast
from unittest.mock import patch

from anyio import to_thread

from koboshi.domain.errors import StoreFailed
from koboshi.ports.store import Store

BEGIN_MS = 1_763_240_400_000
STUCK_SECONDS = 20.0
"""A verb that takes longer than this, on the real clock, never ends."""


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now_s = 0.0
        self.under_way = 0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self.now_s


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if self._loop.under_way or timeout is None:
            found = super().select(STUCK_SECONDS)
            assert found, "nothing works any more, and nothing is due"
            return found
        found = super().select(0)
        if not found:
            self._loop.now_s += timeout
        return found


@contextmanager
def counted_threads() -> Iterator[None]:
    """Time also stands still while a function runs in a thread: one that reads a file, say."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    run_sync = to_thread.run_sync

    async def counted(*args: Any, **kwargs: Any) -> Any:
        loop.under_way += 1
        try:
            return await run_sync(*args, **kwargs)
        finally:
            loop.under_way -= 1

    with patch.object(to_thread, "run_sync", counted):
        yield


class VirtualClock:
    """The clock of a `VirtualLoop`. The wall clock can be moved by itself."""

    def __init__(self, wall_ms: int = BEGIN_MS) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop = loop
        self._wall_ms = wall_ms
        self._passed_ms = 0

    def now_ms(self) -> int:
        return self._wall_ms + self._passed_ms + round(self._loop.now_s * 1000)

    def monotonic(self) -> float:
        return self._loop.now_s + self._passed_ms / 1000

    def move_wall(self, ms: int) -> None:
        self._wall_ms += ms

    def let_pass(self, ms: int) -> None:
        """Time that passes without a real wait."""
        self._passed_ms += ms


class TrackedStore:
    """A store that counts its running verbs, and that can lose its power: after that no verb
    reaches the disk any more, as if the process had been killed at that moment."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.is_dead = False
        self.on_verb: Callable[[str], None] = lambda _: None
        """Called with the name of each verb before it is carried out."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.loop = loop

    def __getattr__(self, name: str) -> Any:
        part = getattr(self.store, name)
        is_group = part is not None and not callable(part) and not isinstance(part, int | str)
        return _TrackedVerbs(self, name, part) if is_group else part

    def as_store(self) -> Store:
        return cast("Store", self)


class _TrackedVerbs:
    def __init__(self, tracked: TrackedStore, group: str, part: object) -> None:
        self._tracked = tracked
        self._group = group
        self._part = part

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._part, name)
        if not iscoroutinefunction(verb):
            return verb
        tracked, place = self._tracked, f"{self._group}.{name}"

        async def call(*args: object, **kwargs: object) -> object:
            tracked.on_verb(place)
            if tracked.is_dead:
                raise StoreFailed("the power is off")
            tracked.loop.under_way += 1
            try:
                return await verb(*args, **kwargs)
            finally:
                tracked.loop.under_way -= 1

        return call
