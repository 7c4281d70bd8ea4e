"""An event loop without real time, threads or files: a seed decides the order of everything.

Time jumps to the next timer when nothing is ready, and creeps while something is. What is ready at
the same moment runs in an order that the dice choose. The order before the throw does not depend
on addresses or hashes, so the same seed gives the same run, in whatever process.
"""

import asyncio
import random
import selectors
from collections import deque
from collections.abc import Coroutine, Generator
from contextvars import Context
from typing import Any, TypeAlias

BEGIN_MS = 1_763_240_400_000
STEP_SECONDS = 0.000_1
"""What one round of the loop takes. Without it a cancellation that waits for a shielded commit
would be delivered again and again, and the commit would never come."""

AnyCoroutine: TypeAlias = Generator[Any, None, Any] | Coroutine[Any, Any, Any]


class SeededTask(asyncio.Task[Any]):
    """A task that is known by its number, so that sets of tasks have the same order in each run."""

    def __init__(
        self, coro: AnyCoroutine, *, number: int, loop: asyncio.AbstractEventLoop, name: str | None
    ) -> None:
        self.number = number
        super().__init__(coro, loop=loop, name=name)

    def __hash__(self) -> int:
        return self.number


class SeededLoop(asyncio.SelectorEventLoop):
    """Runs everything on one thread, in the order of its dice."""

    _ready: deque[asyncio.Handle]

    def __init__(self, dice: random.Random, now_s: float) -> None:
        self.now_s = now_s
        self._dice = dice
        self._tasks_made = 0
        super().__init__(_NoSelector(self))
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        return self.now_s

    def _run_once(self) -> None:
        if len(self._ready) > 1:
            ready = sorted(self._ready, key=_number_of)
            self._dice.shuffle(ready)
            self._ready.clear()
            self._ready.extend(ready)
        super()._run_once()  # type: ignore[misc]  # not in the published types

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: AnyCoroutine,
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> SeededTask:
        self._tasks_made += 1
        return SeededTask(coro, number=self._tasks_made, loop=loop, name=name)


def _number_of(handle: asyncio.Handle) -> int:
    """The number of the task that the handle runs; what is no task keeps its place, in front."""
    owner = getattr(getattr(handle, "_callback", None), "__self__", None)
    return owner.number if isinstance(owner, SeededTask) else 0


class _NoSelector(selectors.SelectSelector):
    """There are no files to wait for: a wait only moves the time."""

    def __init__(self, loop: SeededLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing works any more, and nothing is due"
        self._loop.now_s += max(timeout, STEP_SECONDS)
        return []


class SimClock:
    """The clock of a `SeededLoop`. The wall is set by people, and jumps."""

    def __init__(self, loop: SeededLoop, wall_ms: int) -> None:
        self._loop = loop
        self.wall_ms = wall_ms
        """What the clock on the wall showed at the beginning of time."""

    def now_ms(self) -> int:
        return self.wall_ms + round(self._loop.now_s * 1000)

    def monotonic(self) -> float:
        return self._loop.now_s
