"""Processes that nobody waits for: ended ones get their end stored, unwanted ones are ended."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog
from anyio import create_task_group
from anyio.abc import TaskGroup

from koboshi.domain.ids import ProcessId
from koboshi.domain.process import Process
from koboshi.ports.runners import Life, Runners, Seen
from koboshi.ports.store import Store
from koboshi.ports.wakeups import PROCESSES, Wakeups

log = structlog.get_logger()

GRACE_SECONDS = 5.0


@dataclass(slots=True, kw_only=True)
class Supervise:
    store: Store
    wakeups: Wakeups
    runners: Runners
    store_end: Callable[[ProcessId, Seen], Awaitable[None]]
    poll_seconds: float
    _ending: set[ProcessId] = field(default_factory=set)

    async def keep_supervising(self) -> None:
        """Look at every process that has no end, at boot, at every hint and now and then."""
        async with create_task_group() as tasks:
            while True:
                seen = self.wakeups.count(PROCESSES)
                for process in await self.store.processes.alive():
                    await self._look_after(tasks, process)
                for process_id in await self.store.processes.stranded():
                    await self._settle(process_id)
                await self.wakeups.wait(PROCESSES, self.poll_seconds, since=seen)

    async def _look_after(self, tasks: TaskGroup, process: Process) -> None:
        process_id = process.process_id
        if process.is_end_asked and process_id not in self._ending:
            self._ending.add(process_id)
            tasks.start_soon(self._end, process_id)
            return
        # One that is just being started has no runner yet; its call knows better.
        if process.birth is None or process_id in self._ending:
            return
        await self._settle(process_id)

    async def _settle(self, process_id: ProcessId) -> None:
        """Store what its runner's files tell."""
        found = self.runners.look(process_id)
        if found.life is not Life.ALIVE:
            await self.store_end(process_id, found)
            log.info("process_ended", process=process_id, life=found.life)
        elif found.birth is not None:
            await self.store.processes.born(process_id, found.birth)

    async def _end(self, process_id: ProcessId) -> None:
        try:
            found = await self.runners.end(process_id, grace_s=GRACE_SECONDS)
            await self.store_end(process_id, found)
            log.info("process_stopped", process=process_id, life=found.life)
        finally:
            self._ending.discard(process_id)
