"""Processes that no call waits for: ended ones get their end stored, unwanted ones are ended, and
those that ended long ago are forgotten.

A boot adopts what an earlier one left in the same way: it looks at every process that its rows call
alive, follows those that live, and stores the end of the others."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog
from anyio import CapacityLimiter, create_task_group, sleep, to_thread
from anyio.abc import TaskGroup

from koboshi.domain.ids import ProcessId
from koboshi.domain.process import Process
from koboshi.ports.clock import Clock
from koboshi.ports.runners import Life, Runners, Seen
from koboshi.ports.store import Store
from koboshi.ports.wakeups import PROCESSES, Wakeups

log = structlog.get_logger()

GRACE_SECONDS = 5.0
FOLLOWED_MAX = 200
"""Processes whose end is noticed at once; those beyond are looked at now and then."""
SETTLED_AT_ONCE = 32
FORGOTTEN_AT_ONCE = 10_000
FIRST_SWEEP_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRetention:
    """How long ended processes are kept, and how many."""

    keep_ms: int
    kept_max: int
    sweep_seconds: float


@dataclass(slots=True, kw_only=True)
class Supervise:
    store: Store
    wakeups: Wakeups
    clock: Clock
    runners: Runners
    store_end: Callable[[ProcessId, Seen], Awaitable[None]]
    poll_seconds: float
    retention: ProcessRetention
    elsewhere: tuple[int, int] | None = None
    """After how long the person is told of a process whose node is away, and after how long it is
    lost; None where there are no other nodes."""
    _ending: set[ProcessId] = field(default_factory=set)
    _followed: set[ProcessId] = field(default_factory=set)

    async def keep_supervising(self) -> None:
        """Look at every process that has no end, at boot, at every hint and now and then."""
        async with create_task_group() as tasks:
            while True:
                seen = self.wakeups.count(PROCESSES)
                await self._look_around(tasks)
                if self.elsewhere is not None:
                    told_ms, lost_ms = self.elsewhere
                    await self.store.processes.look_elsewhere(told_ms=told_ms, lost_ms=lost_ms)
                await self.wakeups.wait(PROCESSES, self.poll_seconds, since=seen)

    async def keep_forgetting(self) -> None:
        """Delete processes that ended long ago, rows and files. First a while after the start, so
        that it delays no message, and early enough that a gateway with short lives does it, too."""
        pause_seconds = min(FIRST_SWEEP_SECONDS, self.retention.sweep_seconds)
        while True:
            await sleep(pause_seconds)
            pause_seconds = self.retention.sweep_seconds
            before_ms = self.clock.now_ms() - self.retention.keep_ms
            kept_max = self.retention.kept_max
            for process_id in await self.store.processes.outdated(
                before_ms, kept_max, FORGOTTEN_AT_ONCE
            ):
                await self._forget(process_id)

    async def _look_around(self, tasks: TaskGroup) -> None:
        at_once = CapacityLimiter(SETTLED_AT_ONCE)
        # Side by side, so that many that ended while we were down share their commits.
        async with create_task_group() as looks:
            for process in await self.store.processes.alive():
                looks.start_soon(self._look_after, tasks, at_once, process)
            for process_id in await self.store.processes.stranded():
                looks.start_soon(self._settle, at_once, process_id)
        for process_id in await self.store.processes.with_remains():
            if process_id not in self._ending:
                self._ending.add(process_id)
                tasks.start_soon(self._end_remains, process_id)

    async def _look_after(
        self, tasks: TaskGroup, at_once: CapacityLimiter, process: Process
    ) -> None:
        process_id = process.process_id
        if process.is_end_asked and process_id not in self._ending:
            self._ending.add(process_id)
            tasks.start_soon(self._end, process_id)
            return
        # One that is just being started has no runner yet; its call knows better.
        if process.birth is None or process_id in self._ending or process_id in self._followed:
            return
        is_alive = await self._settle(at_once, process_id)
        if is_alive and not process.is_foreground and len(self._followed) < FOLLOWED_MAX:
            self._followed.add(process_id)
            tasks.start_soon(self._follow, process_id)

    async def _settle(self, at_once: CapacityLimiter, process_id: ProcessId) -> bool:
        """Store what its runner's files tell. Returns whether it is alive."""
        async with at_once:
            try:
                found = self.runners.look(process_id)
                if found.life is not Life.ALIVE:
                    await self.store_end(process_id, found)
            except OSError as error:
                log.warning("process_unseen", process=process_id, error=str(error))
                return False
            if found.life is not Life.ALIVE:
                log.info("process_ended", process=process_id, life=found.life)
            elif found.birth is not None:
                await self.store.processes.born(process_id, found.birth)
            return found.life is Life.ALIVE

    async def _follow(self, process_id: ProcessId) -> None:
        """Wait for its end, to tell of it at once."""
        try:
            found = await self.runners.wait(process_id)
            # A caller that asked for the end stores it as well, and a second one changes nothing.
            await self.store_end(process_id, found)
            log.info("process_ended", process=process_id, life=found.life)
        except OSError as error:
            log.warning("process_unseen", process=process_id, error=str(error))
        finally:
            self._followed.discard(process_id)

    async def _end(self, process_id: ProcessId) -> None:
        try:
            found = await self.runners.end(process_id, grace_s=GRACE_SECONDS)
            await self.store_end(process_id, found)
            log.info("process_stopped", process=process_id, life=found.life)
        except OSError as error:
            log.warning("process_unseen", process=process_id, error=str(error))
        finally:
            self._ending.discard(process_id)

    async def _end_remains(self, process_id: ProcessId) -> None:
        """Of a lost one: what lives on without its runner. Doing it twice does no harm."""
        try:
            await self.runners.end(process_id, grace_s=GRACE_SECONDS)
            await self.store.processes.remains_ended(process_id)
            log.info("process_remains_ended", process=process_id)
        except OSError as error:
            log.warning("process_unseen", process=process_id, error=str(error))
        finally:
            self._ending.discard(process_id)

    async def _forget(self, process_id: ProcessId) -> None:
        """The row goes last: what is left of the files after a crash is found by it."""
        try:
            await to_thread.run_sync(self.runners.remove, process_id)
        except (OSError, ValueError) as error:
            log.warning("process_kept", process=process_id, error=str(error))
            return
        await self.store.processes.forget(process_id)
        log.info("process_forgotten", process=process_id)
