"""Looking at the output of processes on behalf of the agent.

How far a log was examined is known by its watcher's row, and moves there only with a report: what
is remembered here saves reading the same bytes again, and may be forgotten at any time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import structlog
from anyio import sleep, to_thread

from koboshi.domain.ids import WatcherId
from koboshi.domain.process import Process
from koboshi.domain.text import plain
from koboshi.domain.watch import (
    Chunk,
    Finding,
    Matches,
    ReportLimits,
    Watcher,
    WatcherKind,
    WatcherState,
    disarmed,
    examine,
    is_due,
    last_lines,
)
from koboshi.ports.clock import Clock
from koboshi.ports.runners import Runners
from koboshi.ports.store import Store
from koboshi.ports.wakeups import PROCESSES, Wakeups

log = structlog.get_logger()

READ_BYTES = 4_000_000
"""What is examined of one log in one look; the rest is for the next."""
PUT_OFF_SECONDS = 2.0
"""What there was no room to say is not read again at once: it would be read over and over."""
PROGRESS_BYTES = 100_000
PROGRESS_CHARS = 4_000


@dataclass(slots=True, kw_only=True)
class WatchLogs:
    store: Store
    wakeups: Wakeups
    clock: Clock
    runners: Runners
    limits: ReportLimits
    matcher: Callable[[Sequence[str]], Matches]
    redact: Callable[[str], str]
    every_seconds: float
    poll_seconds: float
    _examined: dict[WatcherId, Watcher] = field(default_factory=dict)
    """Watchers that found nothing since their row moved, and how far they have come."""
    _put_off: dict[WatcherId, float] = field(default_factory=dict)
    """Watchers that found something which could not be said, and when they look again."""

    async def keep_watching(self) -> None:
        """Look at every process that has a watcher, again and again."""
        while True:
            seen = self.wakeups.count(PROCESSES)
            watched = await self.store.processes.watched()
            self._forget_all_but({watcher.watcher_id for watcher, _ in watched})
            for watcher, process in watched:
                await self._look_at(watcher, process)
            if watched:
                await sleep(self.every_seconds)
            else:
                await self.wakeups.wait(PROCESSES, self.poll_seconds, since=seen)

    async def _look_at(self, watcher: Watcher, process: Process) -> None:
        if not is_due(watcher, process, self.clock.now_ms(), self.limits):
            return
        if self.clock.monotonic() < self._put_off.get(watcher.watcher_id, 0.0):
            return
        try:
            found = await self._found(watcher, process)
        except OSError as error:
            log.warning("watch_failed", process=process.process_id, error=str(error))
            return
        if not found.output and found.watcher.state is WatcherState.ARMED:
            self._examined[watcher.watcher_id] = found.watcher
            return
        found = replace(found, turn_log_size=process.turn_log_size)
        if await self.store.processes.report(watcher, found):
            self._examined.pop(watcher.watcher_id, None)
            log.info("process_reported", process=process.process_id, kind=watcher.kind)
        else:
            self._put_off[watcher.watcher_id] = self.clock.monotonic() + PUT_OFF_SECONDS

    async def _found(self, watcher: Watcher, process: Process) -> Finding:
        if watcher.kind is WatcherKind.EVERY:
            return await to_thread.run_sync(self._progress, watcher)
        return await to_thread.run_sync(self._matches, watcher, process)

    def _progress(self, watcher: Watcher) -> Finding:
        """What was printed since it was last told."""
        newest = self.runners.read_log(watcher.process_id, -PROGRESS_BYTES, PROGRESS_BYTES)
        fresh = newest.content[max(0, watcher.log_offset - newest.offset) :]
        words = last_lines(self.redact(plain(fresh.decode("utf-8", "replace"))), PROGRESS_CHARS)
        moved = replace(watcher, log_offset=newest.total, reports=watcher.reports + 1)
        return Finding(watcher=moved, output=words or "(no new output)")

    def _matches(self, watcher: Watcher, process: Process) -> Finding:
        """What matches in what was not examined yet, in a thread: output may be long."""
        remembered = self._examined.get(watcher.watcher_id, watcher)
        current = remembered if remembered.reports == watcher.reports else watcher
        piece = self.runners.read_log(process.process_id, current.log_offset, READ_BYTES)
        is_end = piece.offset + len(piece.content) >= piece.total
        is_last = process.ended_ms is not None and is_end
        chunk = Chunk(offset=piece.offset, content=piece.content, is_last=is_last)
        matches = self.matcher(watcher.patterns)
        # What the turn that started it could have seen is told apart from what came later.
        size, redact = process.turn_log_size or 0, self.redact
        found = examine(current, chunk, matches, until=size, redact=redact)
        if not found.output:
            found = examine(found.watcher, chunk, matches, until=None, redact=redact)
        if is_last and not found.output:
            return Finding(watcher=disarmed(found.watcher))
        if found.output and piece.dropped:
            unseen = f"… {piece.dropped} bytes went by unseen …"
            return replace(found, output=f"{unseen}\n{found.output}")
        return found

    def _forget_all_but(self, kept: set[WatcherId]) -> None:
        for remembered in (self._examined, self._put_off):
            for watcher_id in remembered.keys() - kept:
                del remembered[watcher_id]
