"""Processes: a row is committed before a process is started, and its end is stored once."""

from collections.abc import Sequence
from functools import partial

from koboshi.domain import phrases
from koboshi.domain.errors import BackgroundFull, Fenced
from koboshi.domain.ids import CallId, ProcessId, SessionId, TurnId
from koboshi.domain.process import Birth, Process, ProcessEvent, ProcessState
from koboshi.domain.sandbox import Boundary
from koboshi.domain.turn import Claim
from koboshi.domain.watch import Finding, Watcher, WatcherSpec
from koboshi.kernel.away import away_since_ms
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number, numbers, text
from koboshi.kernel.enqueue import enqueue_delivery_once
from koboshi.kernel.keys import lock_found, of_sessions
from koboshi.kernel.moves import move
from koboshi.kernel.process_rows import find_process, process_of, read_process, watcher_of
from koboshi.kernel.record import ask_end, forget_agent, insert_process
from koboshi.kernel.reports import file_end, file_finding
from koboshi.kernel.transaction import Readers, Reading, Transaction, Value, Writer
from koboshi.ports.wakeups import JOURNAL, PROCESSES

LOST_WORDS = "its machine did not come back; how far it got is unknown"


class ProcessVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    @property
    def home(self) -> str:
        return self._context.home

    async def begin(
        self,
        claim: Claim,
        call_id: CallId,
        *,
        command: str,
        workdir: str,
        is_foreground: bool,
        watchers: Sequence[WatcherSpec] = (),
        background_max: int | None = None,
        boundary: Boundary = Boundary.NONE,
        agent: str = "",
    ) -> Process:
        def operation(tx: Transaction) -> Process:
            if tx.row("turn_held", turn_id=claim.turn_id, epoch=claim.epoch) is None:
                raise Fenced(f"the claim on turn {claim.turn_id} is no longer valid")
            process = find_process(tx, claim.turn_id, call_id)
            if process is not None:
                return process
            if background_max is not None and not is_foreground:
                running = tx.number("jobs_running_count", session_id=claim.session_id)
                if running >= background_max:
                    raise BackgroundFull(f"{running} commands run in the background already")
            process = insert_process(
                tx,
                self._context,
                claim,
                call_id,
                command=command,
                workdir=workdir,
                is_foreground=is_foreground,
                boundary=boundary,
                agent=agent,
            )
            for watcher in watchers:
                tx.insert(
                    "watcher_insert",
                    process_id=process.process_id,
                    kind=watcher.kind,
                    argument=watcher.argument,
                )
            return process

        return await self._writer.write("processes.begin", operation, of_sessions(claim.session_id))

    async def born(self, process_id: ProcessId, birth: Birth) -> None:
        def operation(tx: Transaction) -> None:
            lock_found(tx, "process_key", process_id=process_id)
            is_new = move(
                tx,
                "process_born",
                ProcessEvent.BORN,
                process_id=process_id,
                pid=birth.pid,
                birth=f"{birth.boot_id}/{birth.start_ticks}",
            )
            if is_new:
                tx.hints.add(PROCESSES)

        await self._writer.write("processes.born", operation)

    async def ended(
        self,
        process_id: ProcessId,
        state: ProcessState,
        *,
        exit_code: int | None,
        reason: str,
        ended_ms: int,
        output: str = "",
    ) -> None:
        def operation(tx: Transaction) -> None:
            lock_found(tx, "process_key", process_id=process_id)
            has_ended = move(
                tx,
                "process_ended",
                ProcessEvent(state),
                process_id=process_id,
                exit_code=exit_code,
                reason=reason,
                ended_ms=ended_ms,
            )
            if has_ended:
                process = read_process(tx, process_id)
                assert process is not None
                file_end(tx, self._context, process, output)
            tx.hints.update((PROCESSES, JOURNAL))

        await self._writer.write("processes.ended", operation)

    async def report(self, before: Watcher, found: Finding) -> bool:
        def operation(tx: Transaction) -> bool:
            lock_found(tx, "process_key", process_id=before.process_id)
            return file_finding(tx, self._context, before, found)

        return await self._writer.write("processes.report", operation)

    async def forget(self, process_id: ProcessId) -> None:
        def operation(tx: Transaction) -> None:
            lock_found(tx, "process_key", process_id=process_id)
            tx.change("watchers_delete_of", process_id=process_id)
            forget_agent(tx, process_id)
            tx.change("process_delete", process_id=process_id)

        await self._writer.write("processes.forget", operation)

    async def ask_end(self, process_id: ProcessId) -> None:
        await self._writer.write("processes.ask_end", lambda tx: ask_end(tx, process_id))

    async def with_remains(self) -> tuple[ProcessId, ...]:
        return await self._ids("processes_with_remains", home=self.home)

    async def remains_ended(self, process_id: ProcessId) -> None:
        def operation(tx: Transaction) -> None:
            lock_found(tx, "process_key", process_id=process_id)
            tx.change("process_remains_ended", process_id=process_id)

        await self._writer.write("processes.remains_ended", operation)

    async def find(self, turn_id: TurnId, call_id: CallId) -> Process | None:
        return await self._readers.read(lambda tx: find_process(tx, turn_id, call_id))

    async def get(self, process_id: ProcessId) -> Process | None:
        return await self._readers.read(lambda tx: read_process(tx, process_id))

    async def of_session(self, session_id: SessionId, limit: int) -> tuple[Process, ...]:
        rows = await self._readers.read(
            lambda tx: tx.rows("processes_of_session", session_id=session_id, limit=limit)
        )
        return tuple(process_of(row) for row in rows)

    async def stranded(self) -> tuple[ProcessId, ...]:
        return await self._ids("processes_stranded", home=self.home)

    async def watchers(self, process_id: ProcessId) -> tuple[Watcher, ...]:
        rows = await self._readers.read(
            lambda tx: tx.rows("watchers_of_process", process_id=process_id)
        )
        return tuple(watcher_of(row) for row in rows)

    async def watched(self) -> tuple[tuple[Watcher, Process], ...]:
        def look(tx: Reading) -> tuple[tuple[Watcher, Process], ...]:
            watchers = [watcher_of(row) for row in tx.rows("watchers_of_output", home=self.home)]
            watched = {watcher.process_id for watcher in watchers}
            found = {process_id: read_process(tx, process_id) for process_id in watched}
            pairs = ((watcher, found[watcher.process_id]) for watcher in watchers)
            return tuple((watcher, process) for watcher, process in pairs if process is not None)

        return await self._readers.read(look)

    async def of_turn(self, turn_id: TurnId) -> tuple[ProcessId, ...]:
        return await self._ids("processes_of_turn", turn_id=turn_id)

    async def outdated(self, before_ms: int, kept_max: int, limit: int) -> tuple[ProcessId, ...]:
        span: dict[str, Value] = {"before_ms": before_ms, "kept_max": kept_max, "limit": limit}
        span["home"] = self.home
        return await self._ids("processes_outdated", **span)

    async def commands_running(self) -> frozenset[tuple[TurnId, CallId]]:
        rows = await self._readers.read(lambda tx: tx.rows("commands_running", home=self.home))
        return frozenset((TurnId(number(turn)), CallId(text(call))) for turn, call in rows)

    async def alive(self) -> tuple[Process, ...]:
        rows = await self._readers.read(lambda tx: tx.rows("processes_not_ended", home=self.home))
        return tuple(process_of(row) for row in rows)

    async def look_elsewhere(self, *, told_ms: int, lost_ms: int) -> int:
        found = await self._readers.read(lambda tx: _elsewhere_due(tx, self.home, told_ms, lost_ms))
        for process_id in found:
            write = partial(_look_elsewhere, context=self._context, process_id=process_id)
            operation = partial(write, told_ms=told_ms, lost_ms=lost_ms)
            await self._writer.write("processes.look_elsewhere", operation)
        return len(found)

    async def _ids(self, query: str, **values: Value) -> tuple[ProcessId, ...]:
        """The processes that the named query finds."""
        rows = await self._readers.read(lambda tx: tx.rows(query, **values))
        return tuple(ProcessId(each) for each in numbers(rows))


def _elsewhere_due(tx: Reading, home: str, told_ms: int, lost_ms: int) -> list[ProcessId]:
    """Processes of which there is something to tell or to store now."""
    found = []
    for row, _, since in tx.rows("processes_elsewhere", home=home):
        process_id, away_ms = ProcessId(number(row)), tx.now_ms - number(since)
        process = read_process(tx, process_id)
        if process is None:
            continue
        is_untold = away_ms >= told_ms and _is_to_tell(process) and not _is_told(tx, process)
        if away_ms >= lost_ms or is_untold:
            found.append(process_id)
    return found


def _look_elsewhere(
    tx: Transaction, *, context: VerbContext, process_id: ProcessId, told_ms: int, lost_ms: int
) -> None:
    lock_found(tx, "process_key", process_id=process_id)
    process = read_process(tx, process_id)
    since_ms = None if process is None else away_since_ms(tx, context.home, process)
    if process is None or since_ms is None:
        return
    if tx.now_ms - since_ms >= lost_ms:
        move(
            tx,
            "process_ended",
            ProcessEvent.LOST,
            process_id=process_id,
            exit_code=None,
            reason=LOST_WORDS,
            ended_ms=tx.now_ms,
        )
        lost = read_process(tx, process_id)
        assert lost is not None
        file_end(tx, context, lost, "")
        tx.hints.update((PROCESSES, JOURNAL))
    elif tx.now_ms - since_ms >= told_ms and _is_to_tell(process):
        words = phrases.unreachable(process.process_id, process.command, process.node)
        enqueue_delivery_once(tx, process.session_id, _cause(process), words, anchor="")


def _is_to_tell(process: Process) -> bool:
    """A foreign agent, and what it has us run, are told of with the turn that they work on."""
    return not process.is_foreground and not process.agent


def _cause(process: Process) -> str:
    return f"unreachable:{process.process_id}"


def _is_told(tx: Reading, process: Process) -> bool:
    cause = _cause(process)
    return tx.row("delivery_by_cause", session_id=process.session_id, cause=cause) is not None
