"""Rows of processes and of what watches them."""

from koboshi.domain.ids import CallId, Generation, ProcessId, SessionId, TurnId, WatcherId
from koboshi.domain.process import Birth, Process, ProcessState
from koboshi.domain.sandbox import Boundary
from koboshi.domain.watch import Watcher, WatcherKind, WatcherState
from koboshi.kernel.decode import maybe_number, maybe_text, number, text
from koboshi.kernel.transaction import Reading, Row


def process_of(row: Row) -> Process:
    process_id, session_id, generation, turn_id, call_id, foreground, command, workdir, *life = row
    state, pid, birth, exit_code, reason, started_ms, ended_ms, end_asked_ms, *seen = life
    log_size, exit_read_by, boundary, node, home, agent = seen
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
        boundary=Boundary(text(boundary)),
        agent=text(agent),
        node=text(node),
        home=text(home),
    )


def read_process(tx: Reading, process_id: ProcessId) -> Process | None:
    row = tx.row("process_by_id", process_id=process_id)
    return None if row is None else process_of(row)


def find_process(tx: Reading, turn_id: TurnId, call_id: CallId) -> Process | None:
    row = tx.row("process_by_call", turn_id=turn_id, call_id=call_id)
    return None if row is None else process_of(row)


def _birth(pid: int | None, birth: str | None) -> Birth | None:
    if pid is None or birth is None:
        return None
    boot_id, _, ticks = birth.rpartition("/")
    return Birth(boot_id=boot_id, pid=pid, start_ticks=int(ticks))


def watcher_of(row: Row) -> Watcher:
    watcher_id, process_id, kind, argument, state, log_offset, reports, reported_ms, noisy = row
    return Watcher(
        watcher_id=WatcherId(number(watcher_id)),
        process_id=ProcessId(number(process_id)),
        kind=WatcherKind(text(kind)),
        argument=text(argument),
        state=WatcherState(text(state)),
        log_offset=number(log_offset),
        reports=number(reports),
        reported_ms=number(reported_ms),
        noisy=number(noisy),
    )
