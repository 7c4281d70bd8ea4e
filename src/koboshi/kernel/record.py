"""One function per fact, called by the verbs inside their transaction and by nobody else."""

from collections.abc import Sequence
from dataclasses import replace

from koboshi.domain import notes
from koboshi.domain.errors import Fenced
from koboshi.domain.files import OutFile
from koboshi.domain.ids import CallId, EntryId, Epoch, Seq, SessionId, TurnId
from koboshi.domain.inbox import (
    Admission,
    Attach,
    Drop,
    Entry,
    EntryEvent,
    Open,
    OpenTurn,
    ReportWords,
    Tell,
    Words,
    admit,
)
from koboshi.domain.outbox import DeliveryEvent
from koboshi.domain.session import Busy, Session
from koboshi.domain.transcript import (
    KIND_OF,
    Body,
    Choice,
    Message,
    Note,
    Result,
    ResultStatus,
    Step,
)
from koboshi.domain.turn import CLOSED, TurnEvent, TurnState, advance
from koboshi.domain.watch import notice
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import call_of, encoded, entry_of, process_of
from koboshi.kernel.end_notes import end_note, retry_note
from koboshi.kernel.moves import move, move_from
from koboshi.kernel.read import read_open_turn, read_session, read_turn
from koboshi.kernel.transaction import Reading, Transaction, Value
from koboshi.ports.wakeups import JOURNAL, OUTBOX, PROCESSES, TURNS, claim_topic


def add_step(
    tx: Transaction,
    session_id: SessionId,
    turn_id: TurnId,
    epoch: Epoch,
    cause: str,
    body: Body,
    seq: int | None = None,
) -> Step:
    """Append one line to the transcript; `seq` if the caller has asked `next_step` before."""
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
) -> TurnState:
    """Take a turn from one state to the next. Raises Fenced if it is no longer there."""
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
        move(tx, "progress_abandon", DeliveryEvent.WITHDRAWN, turn_id=turn_id, now=tx.now_ms)
        tx.hints.add(claim_topic(turn_id))
    if after is TurnState.QUEUED:
        tx.hints.add(TURNS)
    tx.hints.add(JOURNAL)
    return after


def _close_transcript(
    tx: Transaction, turn_id: TurnId, epoch: Epoch, event: TurnEvent, reason: str
) -> None:
    """Every way out of a turn but its answer leaves one note, in the transaction that closes it."""
    turn = read_turn(tx, turn_id)
    assert turn is not None
    note = end_note(tx, turn, event, reason)
    add_step(tx, turn.session_id, turn_id, epoch, note.cause, note)


def enqueue_delivery(
    tx: Transaction,
    session_id: SessionId,
    turn_id: TurnId | None,
    cause: str,
    parts: Sequence[str],
    *,
    anchor: str,
    choices: tuple[Choice, ...] = (),
    question: Seq | None = None,
    file: OutFile | None = None,
) -> None:
    """Everything a person will see goes through here."""
    for place, words in enumerate(parts, start=1):
        is_last = place == len(parts)
        tx.insert(
            "delivery_insert",
            session_id=session_id,
            turn_id=turn_id,
            cause=cause,
            part=place,
            parts=len(parts),
            text=words,
            choices=encoded(choices) if choices and is_last else "[]",
            question=question,
            anchor=anchor,
            file=encoded(file) if file is not None and is_last else None,
            now=tx.now_ms,
        )
    tx.hints.add(OUTBOX)


def enqueue_delivery_once(
    tx: Transaction, session_id: SessionId, cause: str, words: str, *, anchor: str
) -> None:
    """Say something for a cause for which nothing was ever said in this session."""
    if tx.row("delivery_by_cause", session_id=session_id, cause=cause) is None:
        enqueue_delivery(tx, session_id, None, cause, (words,), anchor=anchor)


def open_turn(tx: Transaction, session: Session, entry: Entry) -> TurnId:
    """Begin a turn with one entry. What asks again is told first what ran before."""
    body = entry.body
    turn_id = TurnId(
        tx.insert(
            "turn_insert",
            session_id=session.session_id,
            generation=session.generation,
            person=entry.sender,
            anchor=body.anchor,
            first_seq=tx.next_step(),
            now=tx.now_ms,
        )
    )
    if (note := retry_note(tx, entry)) is not None:
        add_step(tx, session.session_id, turn_id, Epoch(0), note.cause, note)
    attach_entry(tx, session.session_id, turn_id, Epoch(0), entry)
    tx.hints.add(TURNS)
    return turn_id


def attach_entry(
    tx: Transaction, session_id: SessionId, turn_id: TurnId, epoch: Epoch, entry: Entry
) -> Step:
    """The entry becomes a step of the turn: words of a person a message, a report a note."""
    cause = f"entry:{entry.entry_id}"
    body: Body
    match entry.body:
        case Words(text=text, sent_ms=sent_ms, files=files, name=name):
            body = Message(
                text=text,
                sender=entry.sender,
                entry_id=entry.entry_id,
                sent_ms=sent_ms,
                files=files,
                name=name,
            )
        case ReportWords(headline=headline, output=output, name_to_tell=name):
            body = Note(cause=cause, text=notes.report(headline, output, name=name))
    step = add_step(tx, session_id, turn_id, epoch, cause, body)
    mark_attached(tx, entry.entry_id, turn_id)
    return step


def mark_attached(tx: Transaction, entry_id: EntryId, turn_id: TurnId) -> None:
    values = {"entry_id": entry_id, "turn_id": turn_id, "now": tx.now_ms}
    move(tx, "entry_attach", EntryEvent.ATTACHED, **values)


def drop_entry(tx: Transaction, entry_id: EntryId, reason: str) -> None:
    values: dict[str, Value] = {"entry_id": entry_id, "reason": reason, "now": tx.now_ms}
    move(tx, "entry_drop", EntryEvent.DROPPED, **values)


def open_next(tx: Transaction, context: VerbContext, session_id: SessionId) -> None:
    """After a turn has closed: the oldest entry that waits opens the next one, and every report
    that waits joins it. A message of a person who may not use the gateway any more comes last: its
    turn would not run, and the others would wait behind it."""
    rows = tx.rows("entries_waiting", session_id=session_id)
    if not rows:
        return
    session = read_session(tx, session_id)
    entries = [entry_of(row).entry for row in rows]
    barred = {each.entry_id for each in entries if _is_barred(tx, context, session, each)}
    turn: OpenTurn | None = None
    for entry in sorted(entries, key=lambda each: each.entry_id in barred):
        if turn is not None and entry.entry_id in barred:
            continue
        admission = admission_of(tx, context, session, turn, entry)
        if isinstance(admission, Open):
            turn_id = open_turn(tx, session, entry)
            turn = OpenTurn(turn_id=turn_id, state=TurnState.QUEUED)
        elif isinstance(admission, Attach) and turn is not None:
            attach_entry(tx, session_id, turn.turn_id, Epoch(0), entry)
        else:
            drop_or_notify(tx, context, entry, admission)


def _is_barred(tx: Reading, context: VerbContext, session: Session, entry: Entry) -> bool:
    is_message = isinstance(entry.body, Words)
    return is_message and not context.allows(tx, session.route.channel, entry.sender)


def drop_or_notify(
    tx: Transaction, context: VerbContext, entry: Entry, admission: Admission
) -> None:
    """An entry that no turn hears: it is dropped, or a person is told, or it waits on."""
    if isinstance(admission, Drop):
        drop_entry(tx, entry.entry_id, admission.reason)
    elif isinstance(admission, Tell):
        _tell(tx, context, entry)


def readmit_reports(tx: Transaction, context: VerbContext, session_id: SessionId) -> None:
    """The open turn begins to wait, was set aside, or waits no longer: what is said about processes
    is decided anew. A turn that does not work looks at nothing itself, so the person is told; one
    that goes on hears what it was to hear, if no result of a call is to come first."""
    turn = read_open_turn(tx, session_id)
    if turn is None:
        return
    session = read_session(tx, session_id)
    as_open = OpenTurn(turn_id=turn.turn_id, state=turn.state, question=turn.question_seq)
    has_calls = bool(tx.number("calls_unresolved_count", turn_id=turn.turn_id))
    for entry in (entry_of(row).entry for row in tx.rows("entries_waiting", session_id=session_id)):
        if not isinstance(entry.body, ReportWords):
            continue
        admission = admission_of(tx, context, session, as_open, entry)
        if isinstance(admission, Attach) and not has_calls:
            attach_entry(tx, session_id, turn.turn_id, turn.epoch, entry)
        else:
            drop_or_notify(tx, context, entry, admission)


def _tell(tx: Transaction, context: VerbContext, entry: Entry) -> None:
    """The person is told how a process ended, if they want to be told such things."""
    assert isinstance(entry.body, ReportWords)
    row = tx.row("process_by_id", process_id=entry.body.process_id)
    words = None if row is None else notice(process_of(row), entry.body.output, context.notify)
    if words is None:
        drop_entry(tx, entry.entry_id, "not-wanted")
        return
    move(tx, "entry_handle", EntryEvent.HANDLED, entry_id=entry.entry_id, now=tx.now_ms)
    cause = f"report:{entry.entry_id}"
    enqueue_delivery(tx, entry.session_id, None, cause, (words,), anchor=entry.body.anchor)


def attach_at_boundary(
    tx: Transaction, context: VerbContext, session_id: SessionId, turn_id: TurnId, epoch: Epoch
) -> list[Step]:
    """At a step boundary of a running turn: reports join it, and messages that steer."""
    rows = tx.rows("entries_waiting", session_id=session_id)
    if not rows or tx.number("calls_unresolved_count", turn_id=turn_id):
        return []
    session = read_session(tx, session_id)
    turn = OpenTurn(turn_id=turn_id, state=TurnState.RUNNING)
    steps = []
    for entry in (entry_of(row).entry for row in rows):
        admission = admission_of(tx, context, session, turn, entry, is_boundary=True)
        if _is_barred(tx, context, session, entry):
            continue  # its sender may not steer any more; it waits for a verdict of its own
        if isinstance(admission, Attach):
            steps.append(attach_entry(tx, session_id, turn_id, epoch, entry))
            if isinstance(entry.body, Words):
                anchor = entry.body.anchor
                tx.change("turn_speaks", turn_id=turn_id, person=entry.sender, anchor=anchor)
        else:
            drop_or_notify(tx, context, entry, admission)
    return steps


def admission_of(
    tx: Reading,
    context: VerbContext,
    session: Session,
    turn: OpenTurn | None,
    entry: Entry,
    *,
    is_boundary: bool = False,
) -> Admission:
    return admit(
        entry,
        generation=session.generation,
        open_turn=_with_group(tx, turn, entry),
        busy=session.settings.busy or Busy(context.world.busy),
        is_exit_read=_is_exit_read(tx, entry),
        is_boundary=is_boundary,
    )


def _with_group(tx: Reading, turn: OpenTurn | None, entry: Entry) -> OpenTurn | None:
    """The turn with what its newest message belongs to, where that matters."""
    if turn is None or not isinstance(entry.body, Words) or not entry.body.group:
        return turn
    row = tx.row("turn_group", turn_id=turn.turn_id)
    return turn if row is None else replace(turn, group=str(row[0] or ""))


def _is_exit_read(tx: Reading, entry: Entry) -> bool:
    if not isinstance(entry.body, ReportWords):
        return False
    row = tx.row("process_by_id", process_id=entry.body.process_id)
    return row is not None and process_of(row).exit_read_by is not None


def resolve_calls(
    tx: Transaction, session_id: SessionId, turn_id: TurnId, epoch: Epoch, why: str
) -> None:
    """Every call gets a result before its turn ends, so that the next request is valid. A command
    that nobody will wait for any more is asked to end with it."""
    records = [call_of(row) for row in tx.rows("calls_unresolved", turn_id=turn_id)]
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
    """The foreground processes of the turn are to end, or every process of the session."""
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
    """The call has its result. Raises Fenced if it had one already."""
    call_id: CallId = result.call_id
    status = result.status
    if not tx.change(
        "call_finish", turn_id=turn_id, call_id=call_id, outcome=status, now=tx.now_ms
    ):
        raise Fenced(f"call {call_id} of turn {turn_id} has its result already")
    return add_step(tx, session_id, turn_id, epoch, f"call:{call_id}", result)
