"""How a process ended: stored with the last of its output, and put into words."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from anyio import to_thread

from koboshi.domain.ids import ProcessId
from koboshi.domain.process import Process, ProcessState
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.text import head_and_tail, plain
from koboshi.domain.watch import (
    Chunk,
    Matches,
    Watcher,
    WatcherKind,
    WatcherState,
    examine,
    last_lines,
)
from koboshi.ports.clock import Clock
from koboshi.ports.runners import EndedBy, Ending, EndReason, Life, NotHere, Runners, Seen
from koboshi.ports.store import Processes

OUTPUT_CHARS_MAX = 30_000
LOG_BYTES_READ = 200_000
MATCHED_BYTES_READ = 4_000_000
END_CHARS_MAX = 4_000
"""What is said of the output when a process has ended."""
NEVER_STARTED = "it was never started"

REMAINS_GRACE_SECONDS = 5.0

StoreEnd: TypeAlias = Callable[[ProcessId, Seen], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnds:
    processes: Processes
    runners: Runners
    clock: Clock
    matcher: Callable[[Sequence[str]], Matches]
    redact: Callable[[str], str]

    async def store(self, process_id: ProcessId, seen: Seen) -> None:
        """Store how a process ended, as its runner's record or the lack of one tells, with what is
        to be said about it.

        A lost one may live on without its runner, where that was killed together with its keeper.
        What is left of it is ended before its end is stored: it cannot be adopted, since its
        output goes nowhere and how it ends cannot be known.
        """
        if seen.life is Life.ALIVE:
            return
        process = await self.processes.get(process_id)
        require_here(self.processes, process)
        seen = seen if process is None else as_known(process, seen)
        if has_remains(seen):
            await self.runners.end(process_id, grace_s=REMAINS_GRACE_SECONDS)
        output = await self._last_words(process_id)
        ending = seen.ending
        if ending is None:
            await self.processes.ended(
                process_id,
                ProcessState.LOST,
                exit_code=None,
                reason=why_ended(seen),
                ended_ms=self.clock.now_ms(),
                output=output,
            )
            return
        was_killed = status_of(seen) in ("killed", "timed_out")
        await self.processes.ended(
            process_id,
            ProcessState.KILLED if was_killed else ProcessState.EXITED,
            exit_code=ending.exit_code,
            reason=why_ended(seen),
            ended_ms=ending.ended_ms,
            output=output,
        )

    async def _last_words(self, process_id: ProcessId) -> str:
        """The last of its output, for the report of the end; and what matches in it and was not
        told yet, if that is not among it."""
        process = await self.processes.get(process_id)
        if process is None or process.is_foreground or process.ended_ms is not None:
            return ""
        output = self.redact(await output_of(self.runners, process_id, is_needed=True))
        tail = last_lines(output, END_CHARS_MAX)
        watchers = await self.processes.watchers(process_id)
        for watcher in watchers:
            if watcher.kind is not WatcherKind.MATCH or watcher.state is not WatcherState.ARMED:
                continue
            matched = await to_thread.run_sync(self._unsaid, watcher)
            if matched and matched not in tail:
                tail = f"{matched}\n…\n{tail}"
        return tail

    def _unsaid(self, watcher: Watcher) -> str:
        try:
            log = self.runners.read_log(watcher.process_id, watcher.log_offset, MATCHED_BYTES_READ)
        except OSError as error:
            if shortage_in(error):
                raise
            return ""
        chunk = Chunk(offset=log.offset, content=log.content, is_last=True)
        matches = self.matcher(watcher.patterns)
        return examine(watcher, chunk, matches, until=None, redact=self.redact).output


def require_here(processes: Processes, process: Process | None) -> None:
    """Raises NotHere for a process of another home. A look at it here would find no files, and say
    that it never began: it would be started a second time."""
    if process is not None and not is_here(processes, process):
        raise NotHere(f"process {process.process_id} runs on {process.node}")


def is_here(processes: Processes, process: Process) -> bool:
    return process.home == processes.home


def as_known(process: Process, seen: Seen) -> Seen:
    """What was seen of a process, with what its row knows. Files that are gone say nothing: one
    that ran is lost then, and is never taken for one that has not begun and may be started."""
    if seen.life is Life.UNBORN and process.state is ProcessState.RUNNING:
        return Seen(life=Life.LOST, birth=process.birth, has_no_files=True)
    return seen


def has_remains(seen: Seen) -> bool:
    """Whether something may live on of a process that has no runner any more. What was ended by a
    restart of the machine has none, and what an ended command left behind may be meant to live."""
    return seen.life is Life.LOST and not seen.is_other_boot


def why_ended(seen: Seen) -> str:
    """In words, how a process ended."""
    ending = seen.ending
    if seen.life is Life.UNBORN:
        return NEVER_STARTED
    if seen.has_no_files:
        return "its files are gone; how far it got is unknown"
    if ending is None and seen.is_other_boot:
        return "the machine was restarted while it ran; how far it got is unknown"
    if ending is None:
        return "it was killed together with its runner; how far it got is unknown"
    match ending.by:
        case EndedBy.REQUEST:
            return "it was ended on request"
        case EndedBy.TIMEOUT:
            return "it ran longer than its time limit"
        case EndedBy.START:
            return f"it could not be started: {ending.error}"
        case EndedBy.ITSELF:
            return _by_itself(ending)


def _by_itself(ending: Ending) -> str:
    words = f"it exited with code {ending.exit_code}"
    if ending.signal is not None:
        words = f"it was killed by signal {ending.signal}"
    match ending.reason:
        case None:
            return words
        case EndReason.OUT_OF_MEMORY:
            return f"{words}: out of memory"
        case EndReason.TOLD_TO_STOP:
            return f"it was told to stop, and not by the gateway: {words}"


def status_of(seen: Seen) -> str:
    """The first word of a result about a process."""
    ending = seen.ending
    if seen.life is Life.ALIVE:
        return "running"
    if seen.life is Life.UNBORN:
        return "failed_start"
    if ending is None:
        return "lost"
    match ending.by:
        case EndedBy.TIMEOUT:
            return "timed_out"
        case EndedBy.START:
            return "failed_start"
        case EndedBy.REQUEST:
            return "killed"
        case EndedBy.ITSELF:
            is_own_will = ending.signal is None and ending.reason is None
            return "exited" if is_own_will else "killed"


async def output_of(
    runners: Runners,
    process_id: ProcessId,
    chars_max: int = OUTPUT_CHARS_MAX,
    *,
    is_needed: bool = False,
) -> str:
    """Its output, as a person would have seen it, head and tail. If it is needed and cannot be read
    for lack of something that comes back, raises OSError: the caller asks again later."""
    content = await to_thread.run_sync(_ends_of_log, runners, process_id, is_needed)
    return head_and_tail(plain(content.decode("utf-8", "replace")), chars_max)


def _ends_of_log(runners: Runners, process_id: ProcessId, is_needed: bool) -> bytes:
    half = LOG_BYTES_READ // 2
    try:
        head = runners.read_log(process_id, 0, half)
        end_of_head = head.offset + len(head.content)
        if end_of_head >= head.total:
            return head.content
        tail = runners.read_log(process_id, max(end_of_head, head.total - half), half)
    except OSError as error:
        if is_needed and shortage_in(error):
            raise
        # How it ended is worth more than what it said.
        return f"(its output cannot be read: {error})".encode()
    missing = tail.offset - end_of_head
    gap = f"\n… {missing} bytes left out …\n".encode() if missing else b""
    return head.content + gap + tail.content
