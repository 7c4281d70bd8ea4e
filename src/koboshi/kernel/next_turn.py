"""What follows when a turn ends, begins to wait, or goes on.

Entries that wait in a session are decided on by `admit()` whenever the open turn changes, in the
transaction that changes it. So no entry waits for a turn that is closed, and an idle session has no
entry that could open a turn.
"""

from dataclasses import replace

from koboshi.domain import notes, time_words
from koboshi.domain.goal import GoalState
from koboshi.domain.ids import Epoch, GoalId, ScheduleId, SessionId, TurnId
from koboshi.domain.inbox import (
    JOINING,
    Admission,
    Attach,
    Drop,
    Entry,
    EntryEvent,
    EntryKind,
    Open,
    OpenTurn,
    ReportWords,
    Tell,
    Words,
    admit,
)
from koboshi.domain.schedule import ScheduleState, Trigger
from koboshi.domain.session import Busy, Session
from koboshi.domain.transcript import Author, Note, Question, Step
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.domain.watch import notice
from koboshi.kernel.children import ChildOpening, settle_child
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_text
from koboshi.kernel.endings import TurnEnding, read_ending
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.goal_gate import pass_gate, take_up_goal
from koboshi.kernel.moves import move
from koboshi.kernel.occasions import note_of_reminders, settle_occasion
from koboshi.kernel.process_rows import read_process
from koboshi.kernel.record import (
    abandon_deliveries,
    add_step,
    ask_processes_to_end,
    attach_entry,
    drop_entry,
    move_turn,
    resolve_calls,
    store_entry,
)
from koboshi.kernel.retry_notes import retry_note
from koboshi.kernel.rows import TurnRow, read_open_turn, read_session, read_turn, read_waiting
from koboshi.kernel.telling import tell_ends
from koboshi.kernel.timed_rows import read_goal, read_schedule
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.wakeups import TURNS


def open_turn(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    entry: Entry,
    first: Note | None = None,
) -> TurnId:
    """Open a turn with one entry. If the entry asks words again, a note says first what ran. One
    that time made may begin with a question, and the turn waits for its answer. `first` is what the
    model is told before it."""
    body, trigger, first_seq = entry.body, _trigger(entry), tx.next_step()
    reminded = None
    if entry.kind is EntryKind.MESSAGE:
        reminded = note_of_reminders(tx, context, session.session_id)
    turn_id = TurnId(
        tx.insert(
            "turn_insert",
            session_id=session.session_id,
            generation=session.generation,
            person=entry.sender,
            anchor=body.anchor,
            first_seq=first_seq,
            now=tx.now_ms,
        )
    )
    if session.aside and trigger is not None and trigger.is_fresh:
        place = {"session_id": session.session_id, "context_from": first_seq}
        tx.change("session_begins_anew", **place, now=tx.now_ms)
    for note in (first, reminded, retry_note(tx, entry)):
        if note is not None:
            add_step(tx, session.session_id, turn_id, Epoch(0), note.cause, note)
    if trigger is not None and trigger.note:
        said = Note(cause=notes.TIMED, text=trigger.note)
        add_step(tx, session.session_id, turn_id, Epoch(0), said.cause, said)
    attach_entry(tx, session.session_id, turn_id, Epoch(0), entry)
    if trigger is not None and trigger.ask:
        _ask_first(tx, context, session.session_id, turn_id, trigger)
    tx.hints.add(TURNS)
    return turn_id


def _trigger(entry: Entry) -> Trigger | None:
    return entry.body.trigger if isinstance(entry.body, Words) else None


def _asks(entry: Entry) -> bool:
    trigger = _trigger(entry)
    return trigger is not None and bool(trigger.ask)


def _ask_first(
    tx: Transaction, context: VerbContext, session_id: SessionId, turn_id: TurnId, trigger: Trigger
) -> None:
    """The turn begins with a question of the gateway, and was not worked on."""
    choices = time_words.yes_no(trigger.yes, trigger.no)
    question = Question(author=Author.GATEWAY, text=trigger.ask, choices=choices)
    step = add_step(tx, session_id, turn_id, Epoch(0), "asked-first", question)
    move_turn(
        tx,
        turn_id,
        Epoch(0),
        TurnState.QUEUED,
        TurnEvent.PROMPTED,
        reason="asked first",
        question_seq=step.seq,
        expires_ms=tx.now_ms + context.question_age_ms_max,
    )
    cause = f"step:{step.seq}"
    enqueue_delivery(
        tx,
        session_id,
        turn_id,
        cause,
        (trigger.ask,),
        anchor="",
        choices=choices,
        question=step.seq,
    )


def open_next(tx: Transaction, context: VerbContext, session_id: SessionId) -> None:
    """Open the next turn with the oldest entry that waits. Every waiting report joins it. What time
    made comes behind what people said, and a question of ours behind all. A message of a person
    who lost the right comes last: its turn would not run, and hold up the others."""
    entries = [waiting.entry for waiting in read_waiting(tx, session_id)]
    if not entries:
        return
    session = read_session(tx, session_id)
    barred = {each.entry_id for each in entries if _is_barred(tx, context, session, each)}
    turn: OpenTurn | None = None
    for entry in sorted(entries, key=lambda each: (each.entry_id in barred, _rank(each))):
        if turn is not None and entry.entry_id in barred:
            continue
        admission = admission_of(tx, context, session, turn, entry)
        if isinstance(admission, Open):
            turn_id = open_turn(tx, context, session, entry)
            state = TurnState.WAITING if _asks(entry) else TurnState.QUEUED
            turn = OpenTurn(turn_id=turn_id, state=state)
        elif isinstance(admission, Attach) and turn is not None:
            attach_entry(tx, session_id, turn.turn_id, Epoch(0), entry)
        else:
            drop_or_notify(tx, context, entry, admission)


def _rank(entry: Entry) -> int:
    """Which of the waiting entries has its turn first; of equal ones the oldest."""
    if _asks(entry):
        return 3
    return {EntryKind.OCCASION: 1, EntryKind.GOAL: 2}.get(entry.kind, 0)


def _is_barred(tx: Reading, context: VerbContext, session: Session, entry: Entry) -> bool:
    is_message = isinstance(entry.body, Words)
    return is_message and not context.allows(tx, session.route.channel, entry.sender)


def drop_or_notify(
    tx: Transaction, context: VerbContext, entry: Entry, admission: Admission
) -> None:
    """Handle an entry that joins no turn: it is dropped, the person is told, or it waits."""
    if isinstance(admission, Drop):
        drop_entry(tx, entry.entry_id, admission.reason)
    elif isinstance(admission, Tell):
        _tell(tx, context, entry)


def file_entry(tx: Transaction, context: VerbContext, stored: Entry) -> None:
    """Do with a stored report, or the end of a child, what `admit()` says."""
    session = read_session(tx, stored.session_id)
    turn = read_open_turn(tx, stored.session_id)
    as_open = None if turn is None else OpenTurn(turn_id=turn.turn_id, state=turn.state)
    match admission_of(tx, context, session, as_open, stored):
        case Open():
            open_turn(tx, context, session, stored)
        case Attach() if turn is not None and not _has_open_calls(tx, turn.turn_id):
            attach_entry(tx, session.session_id, turn.turn_id, turn.epoch, stored)
            tx.hints.add(TURNS)
        case admission:
            drop_or_notify(tx, context, stored, admission)


def _has_open_calls(tx: Reading, turn_id: TurnId) -> bool:
    """Whether the turn continues with the result of a call, which may show the end itself. Then the
    report waits and joins behind it."""
    return bool(tx.number("calls_unresolved_count", turn_id=turn_id))


OPENING = ChildOpening(
    open_turn=open_turn,
    admit=file_entry,
    store=store_entry,
    drop=drop_entry,
    end_processes=lambda tx, own: ask_processes_to_end(tx, own, None, everything=True),
)
"""What children need of this layer, and of the one below."""


def readmit_reports(tx: Transaction, context: VerbContext, session_id: SessionId) -> None:
    """Decide again on waiting reports, because the open turn began to wait, was set aside, or goes
    on. While the turn does not work, the person is told. When it goes on, it gets the reports,
    unless the result of a call must come first."""
    turn = read_open_turn(tx, session_id)
    if turn is None:
        return
    session = read_session(tx, session_id)
    as_open = OpenTurn(turn_id=turn.turn_id, state=turn.state, question=turn.question_seq)
    has_calls = _has_open_calls(tx, turn.turn_id)
    for waiting in read_waiting(tx, session_id):
        if waiting.kind not in JOINING:
            continue
        entry = waiting.entry
        admission = admission_of(tx, context, session, as_open, entry)
        if isinstance(admission, Attach) and not has_calls:
            attach_entry(tx, session_id, turn.turn_id, turn.epoch, entry)
        else:
            drop_or_notify(tx, context, entry, admission)


def _tell(tx: Transaction, context: VerbContext, entry: Entry) -> None:
    """Tell the person how a process ended, if the configuration says so."""
    assert isinstance(entry.body, ReportWords)
    process = read_process(tx, entry.body.process_id)
    words = None if process is None else notice(process, entry.body.output, context.notify)
    if words is None:
        drop_entry(tx, entry.entry_id, "not-wanted")
        return
    move(tx, "entry_handle", EntryEvent.HANDLED, entry_id=entry.entry_id, now=tx.now_ms)
    cause = f"report:{entry.entry_id}"
    enqueue_delivery(tx, entry.session_id, None, cause, (words,), anchor=entry.body.anchor)


def attach_at_boundary(
    tx: Transaction, context: VerbContext, session_id: SessionId, turn_id: TurnId, epoch: Epoch
) -> list[Step]:
    """At a step boundary of a running turn, reports and messages that steer join it."""
    entries = read_waiting(tx, session_id)
    if not entries or tx.number("calls_unresolved_count", turn_id=turn_id):
        return []
    session = read_session(tx, session_id)
    turn = OpenTurn(turn_id=turn_id, state=TurnState.RUNNING)
    steps = []
    for entry in (waiting.entry for waiting in entries):
        admission = admission_of(tx, context, session, turn, entry, is_boundary=True)
        if _is_barred(tx, context, session, entry):
            continue  # its sender lost the right to steer; it waits for a verdict of its own
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
        is_moved=_is_moved(tx, entry),
    )


def _is_moved(tx: Reading, entry: Entry) -> bool:
    """Whether the schedule or the goal of an entry was changed since the entry was made."""
    trigger = _trigger(entry)
    if trigger is None:
        return False
    number = int(entry.source.partition(":")[2])
    if entry.kind is EntryKind.GOAL:
        goal = read_goal(tx, GoalId(number))
        is_same = goal is not None and goal.revision == trigger.revision
        return not is_same or goal is None or goal.state is not GoalState.ACTIVE
    schedule = read_schedule(tx, ScheduleId(number))
    if schedule is None or schedule.state is ScheduleState.REMOVED:
        return True
    return schedule.revision != trigger.revision


def _with_group(tx: Reading, turn: OpenTurn | None, entry: Entry) -> OpenTurn | None:
    """The turn with the group of its newest message, where the entry has one."""
    if turn is None or not isinstance(entry.body, Words) or not entry.body.group:
        return turn
    row = tx.row("turn_group", turn_id=turn.turn_id)
    return turn if row is None else replace(turn, group=first_text(row) or "")


def _is_exit_read(tx: Reading, entry: Entry) -> bool:
    if not isinstance(entry.body, ReportWords):
        return False
    process = read_process(tx, entry.body.process_id)
    return process is not None and process.exit_read_by is not None


def go_on_after_reply(
    tx: Transaction, context: VerbContext, turn: TurnRow, *, is_over: bool
) -> None:
    """A person's words reached a turn that waited: it goes on, or they closed it."""
    if is_over:
        go_on_after(tx, context, turn.session_id, turn.turn_id)
    readmit_reports(tx, context, turn.session_id)


def end_turn(
    tx: Transaction,
    context: VerbContext,
    turn: TurnRow,
    event: TurnEvent,
    why: str,
    *,
    worked_ms: int = 0,
) -> None:
    """Close an open turn for good, with all that it holds, and take up what waits behind it."""
    session_id, turn_id = turn.session_id, turn.turn_id
    resolve_calls(tx, session_id, turn_id, turn.epoch, why)
    move_turn(tx, turn_id, turn.epoch, turn.state, event, reason=why, worked_ms=worked_ms)
    abandon_deliveries(tx, session_id, turn_id, why)
    ask_processes_to_end(tx, session_id, turn_id, everything=False)
    go_on_after(tx, context, session_id, turn_id)


def go_on_after(
    tx: Transaction,
    context: VerbContext,
    session_id: SessionId,
    turn_id: TurnId | None,
    ending: TurnEnding | None = None,
) -> None:
    """Finish the transaction that ends a turn: tell how processes ended, say what the end means to
    a schedule and to a goal, and open the next turn. A child of which nothing is open has ended.
    Every way out of a turn ends here. Without a turn, only the next one is opened. `ending` is
    given if the caller has looked already."""
    if turn_id is None:
        open_next(tx, context, session_id)
        settle_child(tx, context, session_id, OPENING)
        return
    ending = ending or read_ending(tx, turn_id)
    assert ending is not None
    if ending.has_ends:
        tell_ends(tx, context, session_id, turn_id)
    has_active_goal = False
    if ending.has_occasion or ending.has_goal:
        turn = read_turn(tx, turn_id)
        assert turn is not None
        settle_occasion(tx, context, turn)
        has_active_goal = pass_gate(tx, turn)
    if ending.has_waiting:
        open_next(tx, context, session_id)
    if has_active_goal:
        take_up_goal(tx, session_id)
    if ending.is_of_child:
        settle_child(tx, context, session_id, OPENING)
