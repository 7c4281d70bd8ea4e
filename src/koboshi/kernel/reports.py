"""What is said about processes: filed in the inbox, in the transaction that moves the watcher."""

from dataclasses import replace

from koboshi.domain.ids import EntryId, TurnId
from koboshi.domain.inbox import (
    Attach,
    Drop,
    Entry,
    EntryKind,
    EntryState,
    Open,
    OpenTurn,
    ReportWords,
)
from koboshi.domain.process import Process
from koboshi.domain.turn import OPEN
from koboshi.domain.watch import (
    Finding,
    Said,
    Watcher,
    WatcherEvent,
    WatcherKind,
    WatcherState,
    headline,
    may_say,
)
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import TurnRow, encoded, number, process_of, watcher_of
from koboshi.kernel.moves import move
from koboshi.kernel.read import moved_ms_of, read_open_turn, read_session, read_turn
from koboshi.kernel.record import admission_of, attach_entry, drop_or_notify, open_turn
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.wakeups import JOURNAL, PROCESSES, TURNS

SOURCE = "process"
_UNFILED = EntryId(0)


def file_end(tx: Transaction, context: VerbContext, process: Process, output: str) -> None:
    """A process in the background has ended. Whoever ended it knows; else the agent hears it if it
    asked to, and otherwise the person."""
    process_id = process.process_id
    if process.is_foreground or process.is_end_asked:
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
    """A watcher has something to say, or only moves on. False if it can not now."""
    row = tx.row("process_by_id", process_id=before.process_id)
    if row is None:
        return False
    process = process_of(row)
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
    """Whether the turn was answered after the look: what belongs to it was not told apart."""
    turn = read_turn(tx, process.turn_id)
    is_over = turn is None or turn.state not in OPEN
    return is_over and found.turn_log_size != process.turn_log_size


def _move(tx: Transaction, before: Watcher, after: Watcher, *, is_heard: bool) -> bool:
    """The watcher has examined more; not if somebody else was faster."""
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
    """Where nobody looks at the output any more, the agent still hears how it ended."""
    rows = tx.rows("watchers_of_process", process_id=process.process_id)
    hears_end = (WatcherKind.EXIT, WatcherKind.EVERY)
    watchers = [watcher_of(row) for row in rows]
    armed = [watcher.kind for watcher in watchers if watcher.state is WatcherState.ARMED]
    if not any(kind in hears_end for kind in armed):
        process_id = process.process_id
        tx.change("watcher_insert", process_id=process_id, kind=WatcherKind.EXIT, argument="")


def _said(tx: Reading, context: VerbContext, process: Process) -> Said:
    since_ms = tx.now_ms - context.report_limits.every_ms
    lately = tx.row(
        "reports_lately", session_id=process.session_id, since_ms=since_ms, now=tx.now_ms
    )
    assert lately is not None
    session_id, process_id = process.session_id, process.process_id
    waiting = tx.row("reports_waiting_of", session_id=session_id, process_id=process_id)
    return Said(
        of_process_waits=waiting is not None,
        of_session=number(lately[0]),
        of_all=number(lately[1]),
    )


def _during_turn(tx: Reading, process: Process, log_offset: int) -> TurnId | None:
    """The turn that started the process, if what was found belongs to it: it is still open, or its
    answer came after this output."""
    turn = read_turn(tx, process.turn_id)
    if turn is not None and turn.state in OPEN:
        return process.turn_id
    size = process.turn_log_size
    return process.turn_id if size is not None and log_offset <= size else None


def _draft(tx: Reading, process: Process, kind: WatcherKind, key: str, output: str) -> Entry:
    """The entry, on behalf of the person for whom the process was started."""
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
        entry_id=_UNFILED,
        session_id=process.session_id,
        generation=process.generation,
        kind=EntryKind.REPORT,
        source=SOURCE,
        external_id=key,
        sender=turn.person,
        body=words,
    )


def _anchor(tx: Reading, turn: TurnRow) -> str:
    """The message that the turn was about; none where its chat has moved since the turn closed."""
    if turn.closed_ms is None or turn.closed_ms > moved_ms_of(tx, turn.session_id):
        return turn.anchor
    return ""


def _file(tx: Transaction, context: VerbContext, entry: Entry) -> None:
    """Store it, and do with it what `admit()` says. Filing it twice is filing it once."""
    inserted = tx.change(
        "entry_insert",
        session_id=entry.session_id,
        generation=entry.generation,
        kind=entry.kind,
        source=entry.source,
        account="",
        external_id=entry.external_id,
        sender=entry.sender,
        body=encoded(entry.body),
        during_turn=entry.during_turn,
        accepted_by=context.worker_id,
        now=tx.now_ms,
        state=EntryState.WAITING,
        reason=None,
    )
    if not inserted:
        return
    entry = replace(entry, entry_id=EntryId(tx.last_id()))
    session = read_session(tx, entry.session_id)
    turn = read_open_turn(tx, entry.session_id)
    as_open = None if turn is None else OpenTurn(turn_id=turn.turn_id, state=turn.state)
    match admission_of(tx, context, session, as_open, entry):
        case Open():
            open_turn(tx, session, entry)
        case Attach() if turn is not None and not _has_open_calls(tx, turn.turn_id):
            attach_entry(tx, session.session_id, turn.turn_id, turn.epoch, entry)
            tx.hints.add(TURNS)
        case admission:
            drop_or_notify(tx, context, entry, admission)
    tx.hints.update((JOURNAL, PROCESSES))


def _has_open_calls(tx: Reading, turn_id: TurnId) -> bool:
    """Whether the turn goes on with the result of a call, which may show the end itself. What
    waits until then joins behind it."""
    return bool(tx.number("calls_unresolved_count", turn_id=turn_id))


def _open_turn(tx: Reading, process: Process) -> OpenTurn | None:
    turn = read_open_turn(tx, process.session_id)
    return None if turn is None else OpenTurn(turn_id=turn.turn_id, state=turn.state)
