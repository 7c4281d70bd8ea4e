"""Reports about processes: stored in the inbox, in the transaction that moves the watcher."""

from dataclasses import replace

from koboshi.domain.ids import TurnId
from koboshi.domain.inbox import Drop, Entry, EntryKind, OpenTurn, ReportWords
from koboshi.domain.process import Process
from koboshi.domain.turn import OPEN
from koboshi.domain.watch import (
    Finding,
    ReportsSoFar,
    Watcher,
    WatcherEvent,
    WatcherKind,
    WatcherState,
    headline,
    may_say,
)
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number
from koboshi.kernel.moves import move
from koboshi.kernel.next_turn import admission_of, file_entry
from koboshi.kernel.process_rows import read_process, watcher_of
from koboshi.kernel.record import NOT_STORED, store_entry
from koboshi.kernel.rows import TurnRow, moved_ms_of, read_open_turn, read_session, read_turn
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.wakeups import JOURNAL, PROCESSES

SOURCE = "process"


def file_end(tx: Transaction, context: VerbContext, process: Process, output: str) -> None:
    """Report the end of a background process, unless it was asked to end. The agent hears it if a
    watcher asked for that, otherwise the person is told."""
    process_id = process.process_id
    if process.is_foreground or process.is_end_asked or process.agent:
        move(tx, "watchers_disarm_of", WatcherEvent.DISARMED, process_id=process_id)
        return
    fired = move(tx, "watchers_fire_of", WatcherEvent.FIRED, process_id=process_id, now=tx.now_ms)
    for_agent = bool(fired)
    if for_agent:
        move(tx, "watchers_disarm_of", WatcherEvent.DISARMED, process_id=process_id)
    entry = _draft(tx, process, WatcherKind.EXIT, f"{process_id}:end", output)
    assert isinstance(entry.body, ReportWords)
    _file(tx, context, replace(entry, body=replace(entry.body, for_agent=for_agent)))


def file_finding(tx: Transaction, context: VerbContext, before: Watcher, found: Finding) -> bool:
    """Store what a watcher found, or only move it on. False if that is not possible now."""
    process = read_process(tx, before.process_id)
    if process is None:
        return False
    if not found.output:
        return _move(tx, before, found.watcher, is_heard=False)
    if _came_too_late(tx, process, found):
        return False
    if not may_say(_said(tx, context, process), context.report_limits):
        return False
    key = f"{process.process_id}:{before.watcher_id}:{found.watcher.reports}"
    entry = _draft(tx, process, before.kind, key, found.output)
    entry = replace(entry, during_turn=_during_turn(tx, process, found.watcher.log_offset))
    session, turn = read_session(tx, process.session_id), _open_turn(tx, process)
    admission = admission_of(tx, context, session, turn, entry)
    if not _move(tx, before, found.watcher, is_heard=not isinstance(admission, Drop)):
        return False
    if found.watcher.state is WatcherState.DISARMED and process.ended_ms is None:
        _promise_end(tx, process)
    if admission == Drop(reason="cut"):
        process_id = process.process_id
        move(tx, "watchers_disarm_output", WatcherEvent.DISARMED, process_id=process_id)
    _file(tx, context, entry)
    return True


def _came_too_late(tx: Reading, process: Process, found: Finding) -> bool:
    """Whether the turn was answered after the look, which therefore did not split the output."""
    turn = read_turn(tx, process.turn_id)
    is_over = turn is None or turn.state not in OPEN
    return is_over and found.turn_log_size != process.turn_log_size


def _move(tx: Transaction, before: Watcher, after: Watcher, *, is_heard: bool) -> bool:
    """Move the watcher on. False if another write moved it first."""
    is_same = after.state is before.state
    touched = move(
        tx,
        "watcher_move",
        WatcherEvent.EXAMINED if is_same else WatcherEvent(after.state),
        watcher_id=before.watcher_id,
        old_offset=before.log_offset,
        old_reports=before.reports,
        log_offset=after.log_offset,
        reports=after.reports,
        noisy=after.noisy,
        is_heard=int(is_heard),
        now=tx.now_ms,
    )
    return bool(touched)


def _promise_end(tx: Transaction, process: Process) -> None:
    """Arm a watcher for the end of a process whose output is no longer watched."""
    rows = tx.rows("watchers_of_process", process_id=process.process_id)
    hears_end = (WatcherKind.EXIT, WatcherKind.EVERY)
    watchers = [watcher_of(row) for row in rows]
    armed = [watcher.kind for watcher in watchers if watcher.state is WatcherState.ARMED]
    if not any(kind in hears_end for kind in armed):
        process_id = process.process_id
        tx.change("watcher_insert", process_id=process_id, kind=WatcherKind.EXIT, argument="")


def _said(tx: Reading, context: VerbContext, process: Process) -> ReportsSoFar:
    since_ms = tx.now_ms - context.report_limits.every_ms
    session_id, process_id = process.session_id, process.process_id
    ((of_session, of_all),) = tx.rows(
        "reports_lately", session_id=session_id, since_ms=since_ms, now=tx.now_ms
    )
    waiting = tx.row("reports_waiting_of", session_id=session_id, process_id=process_id)
    return ReportsSoFar(
        of_process_waits=waiting is not None,
        of_session=number(of_session),
        of_all=number(of_all),
    )


def _during_turn(tx: Reading, process: Process, log_offset: int) -> TurnId | None:
    """The turn that started the process, if the output belongs to it: the turn is open, or its
    answer came after this output."""
    turn = read_turn(tx, process.turn_id)
    if turn is not None and turn.state in OPEN:
        return process.turn_id
    size = process.turn_log_size
    return process.turn_id if size is not None and log_offset <= size else None


def _draft(tx: Reading, process: Process, kind: WatcherKind, key: str, output: str) -> Entry:
    """The entry, in the name of the person for whom the process was started."""
    turn = read_turn(tx, process.turn_id)
    assert turn is not None
    words = ReportWords(
        kind=kind,
        process_id=process.process_id,
        headline=headline(process, kind, tx.now_ms),
        output=output,
        anchor=_anchor(tx, turn),
    )
    return Entry(
        entry_id=NOT_STORED,
        session_id=process.session_id,
        generation=process.generation,
        kind=EntryKind.REPORT,
        source=SOURCE,
        external_id=key,
        sender=turn.person,
        body=words,
    )


def _anchor(tx: Reading, turn: TurnRow) -> str:
    """The message that the turn answers; none if the chat moved after the turn closed."""
    if turn.closed_ms is None or turn.closed_ms > moved_ms_of(tx, turn.session_id):
        return turn.anchor
    return ""


def _file(tx: Transaction, context: VerbContext, entry: Entry) -> None:
    """Store the entry and apply what `admit()` says. A repeated key changes nothing."""
    stored = store_entry(tx, context, entry)
    if stored is None:
        return
    file_entry(tx, context, stored)
    tx.hints.update((JOURNAL, PROCESSES))


def _open_turn(tx: Reading, process: Process) -> OpenTurn | None:
    turn = read_open_turn(tx, process.session_id)
    return None if turn is None else OpenTurn(turn_id=turn.turn_id, state=turn.state)
