"""Work on files, beside the event loop: it is never kept waiting by a disk."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from koboshi.ports.tool import ToolFailed
from koboshi.tools.files.places import PathRefused

THREADS_MAX = 8

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Threads of our own: a disk that hangs stops the file tools, and nothing else."""

    limiter: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(THREADS_MAX))

    async def look(self, work: Callable[[], T]) -> T:
        """Do what changes nothing. If it is not wanted any more, its thread is left to itself."""
        return await self._do(work, is_left=True)

    async def change(self, work: Callable[[], T]) -> T:
        """Do what changes something: it is waited for, so that nothing changes afterwards."""
        return await self._do(work, is_left=False)

    async def _do(self, work: Callable[[], T], *, is_left: bool) -> T:
        try:
            return await to_thread.run_sync(work, limiter=self.limiter, abandon_on_cancel=is_left)
        except PathRefused as refused:
            raise ToolFailed(str(refused)) from None
