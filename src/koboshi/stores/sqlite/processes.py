"""Processes: the intent is a row before anything is started, and the end is stored once."""

from koboshi.domain.errors import Fenced
from koboshi.domain.ids import CallId, Generation, ProcessId, SessionId, TurnId
from koboshi.domain.process import Birth, Process, ProcessState
from koboshi.domain.turn import Claim
from koboshi.ports.wakeups import JOURNAL, PROCESSES
from koboshi.stores.sqlite.reader import Readers
from koboshi.stores.sqlite.rows import maybe_number, maybe_text, number, text
from koboshi.stores.sqlite.transaction import Reading, Row, Transaction
from koboshi.stores.sqlite.writer import Writer


class SqliteProcesses:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def begin(
        self, claim: Claim, call_id: CallId, *, command: str, workdir: str, is_foreground: bool
    ) -> Process:
        def operation(tx: Transaction) -> Process:
            if tx.row("turn_held", turn_id=claim.turn_id, epoch=claim.epoch) is None:
                raise Fenced(f"the claim on turn {claim.turn_id} is no longer valid")
            tx.change(
                "process_insert",
                session_id=claim.session_id,
                generation=claim.generation,
                turn_id=claim.turn_id,
                call_id=call_id,
                foreground=int(is_foreground),
                command=command,
                workdir=workdir,
                now=tx.now_ms,
            )
            process = _find(tx, claim.turn_id, call_id)
            assert process is not None
            return process

        return await self._writer.write("processes.begin", operation)

    async def born(self, process_id: ProcessId, birth: Birth) -> None:
        def operation(tx: Transaction) -> None:
            tx.change(
                "process_born",
                process_id=process_id,
                pid=birth.pid,
                birth=f"{birth.boot_id}/{birth.start_ticks}",
            )

        await self._writer.write("processes.born", operation)

    async def ended(
        self,
        process_id: ProcessId,
        state: ProcessState,
        *,
        exit_code: int | None,
        reason: str,
        ended_ms: int,
    ) -> None:
        def operation(tx: Transaction) -> None:
            tx.change(
                "process_ended",
                process_id=process_id,
                state=state,
                exit_code=exit_code,
                reason=reason,
                ended_ms=ended_ms,
            )
            tx.hints.update((PROCESSES, JOURNAL))

        await self._writer.write("processes.ended", operation)

    async def ask_end(self, process_id: ProcessId) -> None:
        def operation(tx: Transaction) -> None:
            tx.change("process_ask_end", process_id=process_id, now=tx.now_ms)
            tx.hints.add(PROCESSES)

        await self._writer.write("processes.ask_end", operation)

    async def find(self, turn_id: TurnId, call_id: CallId) -> Process | None:
        return await self._readers.read(lambda tx: _find(tx, turn_id, call_id))

    async def get(self, process_id: ProcessId) -> Process | None:
        def look(tx: Reading) -> Process | None:
            row = tx.row("process_by_id", process_id=process_id)
            return None if row is None else process_of(row)

        return await self._readers.read(look)

    async def of_session(self, session_id: SessionId, limit: int) -> tuple[Process, ...]:
        rows = await self._readers.read(
            lambda tx: tx.rows("processes_of_session", session_id=session_id, limit=limit)
        )
        return tuple(process_of(row) for row in rows)

    async def stranded(self) -> tuple[ProcessId, ...]:
        rows = await self._readers.read(lambda tx: tx.rows("processes_stranded"))
        return tuple(ProcessId(number(row[0])) for row in rows)

    async def alive(self) -> tuple[Process, ...]:
        rows = await self._readers.read(lambda tx: tx.rows("processes_not_ended"))
        return tuple(process_of(row) for row in rows)


def mark_exit_read(tx: Transaction, process_id: ProcessId, by: str) -> None:
    """The model was shown how it ended: nobody needs to be told any more."""
    tx.change("process_exit_read", process_id=process_id, by=by)
    tx.change("watchers_disarm_of", process_id=process_id)


def _find(tx: Reading, turn_id: TurnId, call_id: CallId) -> Process | None:
    row = tx.row("process_by_call", turn_id=turn_id, call_id=call_id)
    return None if row is None else process_of(row)


def process_of(row: Row) -> Process:
    process_id, session_id, generation, turn_id, call_id, foreground, command, workdir = row[:8]
    state, pid, birth, exit_code, reason, started_ms, ended_ms, end_asked_ms = row[8:16]
    log_size, exit_read_by = row[16:]
    return Process(
        process_id=ProcessId(number(process_id)),
        session_id=SessionId(number(session_id)),
        generation=Generation(number(generation)),
        turn_id=TurnId(number(turn_id)),
        call_id=CallId(text(call_id)),
        command=text(command),
        workdir=text(workdir),
        is_foreground=bool(foreground),
        state=ProcessState(text(state)),
        birth=_birth(maybe_number(pid), maybe_text(birth)),
        exit_code=maybe_number(exit_code),
        reason=maybe_text(reason),
        started_ms=number(started_ms),
        ended_ms=maybe_number(ended_ms),
        is_end_asked=end_asked_ms is not None,
        turn_log_size=maybe_number(log_size),
        exit_read_by=maybe_text(exit_read_by),
    )


def _birth(pid: int | None, birth: str | None) -> Birth | None:
    if pid is None or birth is None:
        return None
    boot_id, _, ticks = birth.rpartition("/")
    return Birth(boot_id=boot_id, pid=pid, start_ticks=int(ticks))
