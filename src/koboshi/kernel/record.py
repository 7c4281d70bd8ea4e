"""Single effects: one function per fact, called inside the transaction of a verb.

Each column that a verb changes is written by one function here, in `enqueue.py` or in the module of
its table. `move_turn` ends a turn's state: it also writes the note that closes the transcript,
withdraws progress messages and wakes the holder, so no verb can forget them.
"""

from dataclasses import replace

from koboshi.domain import notes, phrases
from koboshi.domain.errors import Fenced
from koboshi.domain.ids import CallId, EntryId, Epoch, ProcessId, Seq, SessionId, TurnId, WorkerId
from koboshi.domain.inbox import ChildWords, Entry, EntryEvent, EntryState, ReportWords, Words
from koboshi.domain.outbox import DeliveryEvent
from koboshi.domain.process import Process
from koboshi.domain.sandbox import Boundary
from koboshi.domain.transcript import KIND_OF, Body, Message, Note, Result, ResultStatus, Step
from koboshi.domain.turn import CLOSED, Claim, TurnEvent, TurnState, advance
from koboshi.domain.watch import WatcherEvent
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import body_of, encoded, texts
from koboshi.kernel.keys import lock_found
from koboshi.kernel.moves import move, move_from
from koboshi.kernel.process_rows import find_process
from koboshi.kernel.rows import TurnRow, read_headline, read_turn, read_unresolved
from koboshi.kernel.transaction import Reading, Transaction, Value
from koboshi.ports.wakeups import JOURNAL, PROCESSES, TURNS, WORKERS, claim_topic

MESSAGES_QUOTED = 20
NOT_STORED = EntryId(0)
"""The id of an entry that is not in the inbox yet."""


def add_step(
    tx: Transaction,
    session_id: SessionId,
    turn_id: TurnId,
    epoch: Epoch,
    cause: str,
    body: Body,
    seq: int | None = None,
) -> Step:
    """Append one step to the transcript. `seq` is given if the caller asked `next_step` before."""
    seq = tx.next_step() if seq is None else seq
    tx.change(
        "step_insert",
        seq=seq,
        session_id=session_id,
        turn_id=turn_id,
        epoch=epoch,
        kind=KIND_OF[type(body)],
        cause=cause,
        body=encoded(body),
        now=tx.now_ms,
    )
    tx.hints.add(JOURNAL)
    return Step(seq=Seq(seq), turn_id=turn_id, epoch=epoch, at_ms=tx.now_ms, body=body)


def move_turn(
    tx: Transaction,
    turn_id: TurnId,
    epoch: Epoch,
    before: TurnState,
    event: TurnEvent,
    *,
    rule: str | None = None,
    reason: str | None = None,
    question_seq: int | None = None,
    expires_ms: int | None = None,
    not_before_ms: int = 0,
    worked_ms: int = 0,
    recovered: bool = False,
    died: bool = False,
    progressed: bool = False,
    renewed: bool = False,
    has_progress: bool = True,
) -> TurnState:
    """Move a turn from one state to the next. Raises Fenced if it is no longer in that state.
    Without `has_progress`, the caller has seen that it owes no progress message."""
    after = advance(before, event)
    touched = move_from(
        tx,
        "turn_move",
        event,
        before,
        turn_id=turn_id,
        epoch=epoch,
        rule=rule,
        reason=reason,
        question_seq=question_seq,
        expires_ms=expires_ms,
        closed_ms=tx.now_ms if after in CLOSED else None,
        now=tx.now_ms,
        not_before_ms=not_before_ms,
        worked_ms=worked_ms,
        recovered=int(recovered),
        died=int(died),
        progressed=int(progressed),
        renewed=int(renewed),
    )
    if not touched:
        raise Fenced(f"turn {turn_id} is no longer {before} in epoch {epoch}")
    if after in (TurnState.STOPPED, TurnState.FAILED):
        _close_transcript(tx, turn_id, epoch, event, reason or "")
    if before is TurnState.RUNNING:
        _let_go(tx, turn_id, has_progress=has_progress)
    if after is TurnState.QUEUED:
        tx.hints.add(TURNS)
    tx.hints.add(JOURNAL)
    return after


def _let_go(tx: Transaction, turn_id: TurnId, *, has_progress: bool) -> None:
    """No worker holds the turn any more: what it was to say meanwhile is not said."""
    if has_progress:
        move(tx, "progress_abandon", DeliveryEvent.WITHDRAWN, turn_id=turn_id, now=tx.now_ms)
    tx.hints.add(claim_topic(turn_id))


def _close_transcript(
    tx: Transaction, turn_id: TurnId, epoch: Epoch, event: TurnEvent, reason: str
) -> None:
    """Every way out of a turn except its answer leaves one note, in the closing transaction."""
    turn = read_turn(tx, turn_id)
    assert turn is not None
    note = end_note(tx, turn, event, reason)
    add_step(tx, turn.session_id, turn_id, epoch, note.cause, note)


def attach_entry(
    tx: Transaction, session_id: SessionId, turn_id: TurnId, epoch: Epoch, entry: Entry
) -> Step:
    """Make the entry a step of the turn: a message of a person, or a note from a report."""
    cause = f"entry:{entry.entry_id}"
    body: Body
    match entry.body:
        case Words(text=text, sent_ms=sent_ms, files=files, name=name, trigger=trigger):
            body = Message(
                text=text,
                sender=entry.sender,
                entry_id=entry.entry_id,
                sent_ms=sent_ms,
                files=files,
                name=name,
                command="" if trigger is None else trigger.command,
                is_plain=trigger is not None and trigger.is_plain,
            )
        case ReportWords(headline=headline, output=output, name_to_tell=name):
            body = Note(cause=cause, text=notes.report(headline, output, name=name))
        case ChildWords(headline=headline, output=output):
            body = Note(cause=cause, text=notes.child_end(headline, output))
    step = add_step(tx, session_id, turn_id, epoch, cause, body)
    mark_attached(tx, entry.entry_id, turn_id)
    return step


def store_entry(tx: Transaction, context: VerbContext, entry: Entry) -> Entry | None:
    """Put an entry of the gateway's own into the inbox, where it waits. Returns it with its id;
    None if its key is there already, and then nothing changes."""
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
    tx.hints.add(JOURNAL)
    return replace(entry, entry_id=EntryId(tx.last_id())) if inserted else None


def mark_attached(tx: Transaction, entry_id: EntryId, turn_id: TurnId) -> None:
    values = {"entry_id": entry_id, "turn_id": turn_id, "now": tx.now_ms}
    move(tx, "entry_attach", EntryEvent.ATTACHED, **values)


def drop_entry(tx: Transaction, entry_id: EntryId, reason: str) -> None:
    values: dict[str, Value] = {"entry_id": entry_id, "reason": reason, "now": tx.now_ms}
    move(tx, "entry_drop", EntryEvent.DROPPED, **values)


def resolve_calls(
    tx: Transaction, session_id: SessionId, turn_id: TurnId, epoch: Epoch, why: str
) -> None:
    """Give every call a result before its turn ends, so that the next request is valid. A command
    that the turn waited for is asked to end."""
    records = read_unresolved(tx, turn_id)
    for record in records:
        unknown = record.is_under_way and not record.waits_for_person
        text = notes.stopped(f"{why}; its outcome is unknown" if unknown else why)
        status = ResultStatus.UNKNOWN if unknown else ResultStatus.STOPPED
        result = Result(call_id=record.call.call_id, status=status, text=text)
        add_result(tx, session_id, turn_id, epoch, result)
    if any(record.is_under_way for record in records):
        ask_processes_to_end(tx, session_id, turn_id, everything=False)


def ask_processes_to_end(
    tx: Transaction, session_id: SessionId, turn_id: TurnId | None, *, everything: bool
) -> None:
    """Ask the foreground processes of the turn to end, or every process of the session."""
    touched = tx.change(
        "processes_ask_end",
        session_id=session_id,
        turn_id=turn_id,
        everything=int(everything),
        now=tx.now_ms,
    )
    if touched:
        tx.hints.add(PROCESSES)


def add_result(
    tx: Transaction, session_id: SessionId, turn_id: TurnId, epoch: Epoch, result: Result
) -> Step:
    """Store the result of a call. Raises Fenced if it has one already."""
    call_id: CallId = result.call_id
    status = result.status
    if not tx.change(
        "call_finish", turn_id=turn_id, call_id=call_id, outcome=status, now=tx.now_ms
    ):
        raise Fenced(f"call {call_id} of turn {turn_id} has its result already")
    return add_step(tx, session_id, turn_id, epoch, f"call:{call_id}", result)


def end_note(tx: Reading, turn: TurnRow, event: TurnEvent, reason: str) -> Note:
    """The note that closes a turn's transcript: what was asked, when, and how it ended."""
    asked = _words_in(tx, turn)
    headline = "" if asked else read_headline(tx, turn)
    words = notes.ended(
        event,
        phrases.failure(reason),
        request=asked or headline,
        is_report=bool(headline),
        at=phrases.clock_words(turn.opened_ms),
        is_begun=turn.epoch > 0,
    )
    return Note(cause=notes.ENDED, text=words)


def _words_in(tx: Reading, turn: TurnRow) -> str:
    """What people said in a turn, in order."""
    rows = tx.rows("turn_messages", **turn.span, limit=MESSAGES_QUOTED)
    said = (body_of("message", body) for body in texts(rows))
    return "\n".join(each.words for each in said if isinstance(each, Message)).strip()


def abandon_deliveries(
    tx: Transaction, session_id: SessionId, turn_id: TurnId, reason: str
) -> None:
    """Withdraw what an ended turn still owed."""
    move(
        tx,
        "deliveries_abandon",
        DeliveryEvent.WITHDRAWN,
        session_id=session_id,
        turn_id=turn_id,
        reason=reason,
        now=tx.now_ms,
    )


def settle_turn(tx: Transaction, turn_id: TurnId) -> None:
    """Close an answered turn, if all its deliveries are settled, in whatever session they are."""
    move(tx, "turn_settle", TurnEvent.SETTLED, turn_id=turn_id, now=tx.now_ms)


def ask_end(tx: Transaction, process_id: ProcessId) -> None:
    """Ask a process to end; of a lost process, what may be left of it."""
    lock_found(tx, "process_key", process_id=process_id)
    if not tx.change("process_ask_end", process_id=process_id, now=tx.now_ms):
        tx.change("process_ask_remains", process_id=process_id, now=tx.now_ms)
    tx.hints.add(PROCESSES)


def mark_exit_read(tx: Transaction, process_id: ProcessId, by: str) -> None:
    """The model was shown how the process ended, so its watchers are disarmed."""
    tx.change("process_exit_read", process_id=process_id, by=by)
    move(tx, "watchers_disarm_of", WatcherEvent.DISARMED, process_id=process_id)


def mark_log_size(tx: Transaction, turn_id: TurnId, process_id: ProcessId, log_size: int) -> None:
    """Store how much a process had written when its turn was answered."""
    tx.change("process_turn_log_size", turn_id=turn_id, process_id=process_id, log_size=log_size)


def ask_restart(tx: Transaction, worker_id: WorkerId, by: str) -> None:
    """Ask the worker to restart. The first request is remembered."""
    tx.change("worker_restart", worker_id=worker_id, by=by)
    tx.hints.add(WORKERS)


def insert_process(
    tx: Transaction,
    context: VerbContext,
    claim: Claim,
    call_id: CallId,
    *,
    command: str,
    workdir: str,
    is_foreground: bool,
    boundary: Boundary,
    agent: str = "",
) -> Process:
    """Store the intent to start a process."""
    tx.change(
        "process_insert",
        session_id=claim.session_id,
        generation=claim.generation,
        turn_id=claim.turn_id,
        call_id=call_id,
        foreground=int(is_foreground),
        command=command,
        workdir=workdir,
        node=context.node,
        home=context.home,
        boundary=boundary,
        agent=agent,
        now=tx.now_ms,
    )
    process = find_process(tx, claim.turn_id, call_id)
    assert process is not None
    return process


def close_agent_session(tx: Transaction, session_id: SessionId, reason: str) -> None:
    """The chat has no conversation with a foreign agent any more. What it runs is ended later."""
    if tx.change("agent_session_close", session_id=session_id, reason=reason, now=tx.now_ms):
        tx.hints.add(PROCESSES)


def forget_agent(tx: Transaction, process_id: ProcessId) -> None:
    """Delete what is known of an agent's process, if it is one."""
    for table in ("events", "requests", "messages"):
        tx.change(f"agent_{table}_delete_of", process_id=process_id)
    tx.change("agent_process_delete", process_id=process_id)
