"""Processes: a row is committed before a process is started, and its end is stored once."""

from collections.abc import Sequence

from koboshi.domain.errors import BackgroundFull, Fenced
from koboshi.domain.ids import CallId, ProcessId, SessionId, TurnId
from koboshi.domain.process import Birth, Process, ProcessEvent, ProcessState
from koboshi.domain.sandbox import Boundary
from koboshi.domain.turn import Claim
from koboshi.domain.watch import Finding, Watcher, WatcherSpec
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number, numbers, text
from koboshi.kernel.keys import lock_found, of_sessions
from koboshi.kernel.moves import move
from koboshi.kernel.process_rows import process_of, read_process, watcher_of
from koboshi.kernel.record import ask_end
from koboshi.kernel.reports import file_end, file_finding
from koboshi.kernel.transaction import Readers, Reading, Transaction, Value, Writer
from koboshi.ports.wakeups import JOURNAL, PROCESSES


class ProcessVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

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
    ) -> Process:
        def operation(tx: Transaction) -> Process:
            if tx.row("turn_held", turn_id=claim.turn_id, epoch=claim.epoch) is None:
                raise Fenced(f"the claim on turn {claim.turn_id} is no longer valid")
            process = _find(tx, claim.turn_id, call_id)
            if process is not None:
                return process
            if background_max is not None and not is_foreground:
                running = tx.number("jobs_running_count", session_id=claim.session_id)
                if running >= background_max:
                    raise BackgroundFull(f"{running} commands run in the background already")
            tx.change(
                "process_insert",
                session_id=claim.session_id,
                generation=claim.generation,
                turn_id=claim.turn_id,
                call_id=call_id,
                foreground=int(is_foreground),
                command=command,
                workdir=workdir,
                node=self._context.node,
                home=self._context.home,
                boundary=boundary,
                now=tx.now_ms,
            )
            process = _find(tx, claim.turn_id, call_id)
            assert process is not None
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
            tx.change("process_delete", process_id=process_id)

        await self._writer.write("processes.forget", operation)

    async def ask_end(self, process_id: ProcessId) -> None:
        await self._writer.write("processes.ask_end", lambda tx: ask_end(tx, process_id))

    async def with_remains(self) -> tuple[ProcessId, ...]:
        return await self._ids("processes_with_remains")

    async def remains_ended(self, process_id: ProcessId) -> None:
        def operation(tx: Transaction) -> None:
            lock_found(tx, "process_key", process_id=process_id)
            tx.change("process_remains_ended", process_id=process_id)

        await self._writer.write("processes.remains_ended", operation)

    async def find(self, turn_id: TurnId, call_id: CallId) -> Process | None:
        return await self._readers.read(lambda tx: _find(tx, turn_id, call_id))

    async def get(self, process_id: ProcessId) -> Process | None:
        return await self._readers.read(lambda tx: read_process(tx, process_id))

    async def of_session(self, session_id: SessionId, limit: int) -> tuple[Process, ...]:
        rows = await self._readers.read(
            lambda tx: tx.rows("processes_of_session", session_id=session_id, limit=limit)
        )
        return tuple(process_of(row) for row in rows)

    async def stranded(self) -> tuple[ProcessId, ...]:
        return await self._ids("processes_stranded")

    async def watchers(self, process_id: ProcessId) -> tuple[Watcher, ...]:
        rows = await self._readers.read(
            lambda tx: tx.rows("watchers_of_process", process_id=process_id)
        )
        return tuple(watcher_of(row) for row in rows)

    async def watched(self) -> tuple[tuple[Watcher, Process], ...]:
        def look(tx: Reading) -> tuple[tuple[Watcher, Process], ...]:
            watchers = [watcher_of(row) for row in tx.rows("watchers_of_output")]
            watched = {watcher.process_id for watcher in watchers}
            found = {process_id: read_process(tx, process_id) for process_id in watched}
            pairs = ((watcher, found[watcher.process_id]) for watcher in watchers)
            return tuple((watcher, process) for watcher, process in pairs if process is not None)

        return await self._readers.read(look)

    async def of_turn(self, turn_id: TurnId) -> tuple[ProcessId, ...]:
        return await self._ids("processes_of_turn", turn_id=turn_id)

    async def outdated(self, before_ms: int, kept_max: int, limit: int) -> tuple[ProcessId, ...]:
        span = {"before_ms": before_ms, "kept_max": kept_max, "limit": limit}
        return await self._ids("processes_outdated", **span)

    async def commands_running(self) -> frozenset[tuple[TurnId, CallId]]:
        rows = await self._readers.read(lambda tx: tx.rows("commands_running"))
        return frozenset((TurnId(number(turn)), CallId(text(call))) for turn, call in rows)

    async def alive(self) -> tuple[Process, ...]:
        rows = await self._readers.read(lambda tx: tx.rows("processes_not_ended"))
        return tuple(process_of(row) for row in rows)

    async def _ids(self, query: str, **values: Value) -> tuple[ProcessId, ...]:
        """The processes that the named query finds."""
        rows = await self._readers.read(lambda tx: tx.rows(query, **values))
        return tuple(ProcessId(each) for each in numbers(rows))


def _find(tx: Reading, turn_id: TurnId, call_id: CallId) -> Process | None:
    row = tx.row("process_by_call", turn_id=turn_id, call_id=call_id)
    return None if row is None else process_of(row)
