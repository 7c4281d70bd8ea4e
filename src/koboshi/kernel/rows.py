"""Rows as typed values: one decoder per table, and the single rows that many verbs read."""

from dataclasses import dataclass
from typing import NamedTuple

from koboshi.domain import notes, phrases
from koboshi.domain.ids import (
    CallId,
    ChannelName,
    EntryId,
    Epoch,
    Generation,
    Seq,
    SessionId,
    TurnId,
    WorkerId,
)
from koboshi.domain.inbox import ChildWords, Entry, EntryKind, ReportWords, Words
from koboshi.domain.route import Route
from koboshi.domain.session import Session
from koboshi.domain.transcript import Call, CallRecord, Effect, Message, Need, Note, Question, Step
from koboshi.domain.turn import TurnState
from koboshi.domain.worker import EndedHow, Worker
from koboshi.kernel.decode import (
    body_of,
    child_words_of,
    first_number,
    first_text,
    maybe_number,
    maybe_text,
    number,
    report_of,
    settings_of,
    text,
    words_of,
)
from koboshi.kernel.transaction import Reading, Row, Value

BY_PERSON = "person"
"""The reason of a RESUMED that a person asked for."""
RETRY = "retry"
"""The source of an entry that asks words again. Its key is the turn or the message that they are
of: there is one for each."""


def step_of(row: Row) -> Step:
    seq, turn_id, epoch, at_ms, kind, body = row
    return Step(
        seq=Seq(number(seq)),
        turn_id=TurnId(number(turn_id)),
        epoch=Epoch(number(epoch)),
        at_ms=number(at_ms),
        body=body_of(kind, body),
    )


def session_of(row: Row) -> Session:
    session_id, channel, chat, thread, generation, context_from, settings, person, aside = row
    return Session(
        session_id=SessionId(number(session_id)),
        route=Route(channel=ChannelName(text(channel)), chat=text(chat), thread=text(thread)),
        generation=Generation(number(generation)),
        context_from=Seq(number(context_from)),
        settings=settings_of(settings),
        person=text(person),
        aside=text(aside),
    )


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn as it is stored: the columns `turn` of `queries.sql`."""

    turn_id: TurnId
    session_id: SessionId
    generation: Generation
    state: TurnState
    event: str
    rule: str | None
    reason: str | None
    epoch: Epoch
    worker_id: WorkerId | None
    recoveries: int
    crash_streak: int
    person: str
    anchor: str
    first_seq: Seq
    question_seq: Seq | None
    opened_ms: int
    progressed_ms: int
    worked_ms: int
    changed_ms: int
    closed_ms: int | None
    model_tries: int
    not_before_ms: int
    model_waited_ms: int
    model_failure: str | None

    @property
    def span(self) -> dict[str, Value]:
        """Where its steps are, for the queries that look at them."""
        return {
            "session_id": self.session_id,
            "first_seq": self.first_seq,
            "turn_id": self.turn_id,
        }


def turn_of(row: Row) -> TurnRow:
    turn = TurnRow(*row)  # type: ignore[arg-type]
    object.__setattr__(turn, "state", TurnState(turn.state))
    return turn


class EntryRow(NamedTuple):
    """An entry of the inbox as it is stored: the columns `entry` of `queries.sql`."""

    entry_id: EntryId
    session_id: SessionId | None
    generation: Generation | None
    kind: str
    source: str
    external_id: str
    sender: str
    body: str
    during_turn: TurnId | None
    accepted_by: WorkerId | None
    received_ms: int
    state: str
    turn_id: TurnId | None
    reason: str | None

    @property
    def entry(self) -> Entry:
        """What it says, and to whom. Only an ignored entry belongs to no session."""
        assert self.session_id is not None
        assert self.generation is not None
        return Entry(
            entry_id=self.entry_id,
            session_id=self.session_id,
            generation=self.generation,
            kind=EntryKind(self.kind),
            source=self.source,
            external_id=self.external_id,
            sender=self.sender,
            body=entry_body(self.kind, self.body),
            during_turn=self.during_turn,
        )


def entry_body(kind: str, body: str) -> Words | ReportWords | ChildWords:
    """What an entry of a kind says."""
    match kind:
        case EntryKind.REPORT:
            return report_of(body)
        case EntryKind.CHILD:
            return child_words_of(body)
        case _:
            return words_of(body)


def entry_of(row: Row) -> EntryRow:
    return EntryRow._make(row)


def read_entry(tx: Reading, entry_id: EntryId) -> EntryRow | None:
    row = tx.row("view_entry", entry_id=entry_id)
    return None if row is None else entry_of(row)


def find_entry(tx: Reading, **key: Value) -> EntryRow | None:
    """What was stored for a platform's id: `source`, `account` and `external_id`."""
    row = tx.row("entry_by_key", **key)
    return None if row is None else entry_of(row)


def read_waiting(tx: Reading, session_id: SessionId) -> list[EntryRow]:
    """What waits in a session, oldest first."""
    return [entry_of(row) for row in tx.rows("entries_waiting", session_id=session_id)]


def call_of(row: Row) -> CallRecord:
    call_id, tool, arguments, effect, need, provider_id, *times = row
    started_ms, died_ms, finished_ms, skipped_ms, approved_by, approved_ms, seal = times
    return CallRecord(
        call=Call(
            call_id=CallId(text(call_id)),
            tool=text(tool),
            arguments=text(arguments),
            effect=Effect(text(effect)),
            need=Need(text(need)),
            provider_id=text(provider_id),
        ),
        started_ms=maybe_number(started_ms),
        died_ms=maybe_number(died_ms),
        finished_ms=maybe_number(finished_ms),
        skipped_ms=maybe_number(skipped_ms),
        approved_by=maybe_text(approved_by),
        approved_ms=maybe_number(approved_ms),
        seal=maybe_text(seal),
    )


def worker_of(row: Row) -> Worker:
    worker_id, host, pid, birth, version, started_ms, heartbeat_ms, *rest = row
    draining, ended_ms, how, restart_by, found_dead, report, node, home = rest
    return Worker(
        worker_id=WorkerId(number(worker_id)),
        host=text(host),
        pid=number(pid),
        birth=text(birth),
        version=text(version),
        started_ms=number(started_ms),
        heartbeat_ms=number(heartbeat_ms),
        is_draining=bool(draining),
        ended_ms=maybe_number(ended_ms),
        ended_how=None if how is None else EndedHow(text(how)),
        restart_by=maybe_text(restart_by),
        found_dead=number(found_dead),
        report=maybe_text(report),
        node=text(node),
        home=text(home),
    )


def read_session(tx: Reading, session_id: SessionId) -> Session:
    row = tx.row("session_by_id", session_id=session_id)
    assert row is not None, "a row refers to a session that is not there"
    return session_of(row)


def is_shown_in(tx: Reading, session: Session, turn: TurnRow) -> bool:
    """Whether the question that the turn waits for stands in the chat of the session, for all that
    is known. A card that the platform refused, for good or for now, certainly does not. What works
    beside a conversation asks in its chat."""
    assert turn.question_seq is not None
    places = {session.session_id}
    if read_session(tx, turn.session_id).route == session.route:
        places.add(turn.session_id)
    return any(
        tx.row("approval_shown", session_id=each, question=turn.question_seq) is not None
        for each in places
    )


def find_session(tx: Reading, route: Route) -> Session | None:
    row = tx.row("session_by_route", channel=route.channel, chat=route.chat, thread=route.thread)
    return None if row is None else session_of(row)


def whose_rules(tx: Reading, session_id: SessionId) -> SessionId:
    """The chat whose rules hold for what is done in a session: a child has none of its own."""
    session = read_session(tx, session_id)
    found = find_session(tx, session.route) if session.is_child else None
    return session_id if found is None else found.session_id


def read_turn(tx: Reading, turn_id: TurnId) -> TurnRow | None:
    row = tx.row("turn_by_id", turn_id=turn_id)
    return None if row is None else turn_of(row)


def is_gone(tx: Reading, worker_id: WorkerId | None) -> bool:
    """Whether a worker has ended, so that any other worker may take what it held. Only its row says
    so: a process that takes over a home first ends the workers that it finds there."""
    return worker_id is None or tx.row("worker_gone", worker_id=worker_id) is not None


def read_open_turn(tx: Reading, session_id: SessionId) -> TurnRow | None:
    row = tx.row("turn_open", session_id=session_id)
    return None if row is None else turn_of(row)


def read_question(tx: Reading, seq: Seq) -> Question:
    row = tx.row("step_by_seq", seq=seq)
    assert row is not None, "a turn waits for a question that is not there"
    body = step_of(row).body
    assert isinstance(body, Question)
    return body


def read_last_question(tx: Reading, turn: TurnRow) -> Question | None:
    """The question that a turn asked last, answered or not."""
    found = first_text(tx.row("question_newest", **turn.span))
    body = None if found is None else body_of("question", found)
    return body if isinstance(body, Question) else None


def read_request(tx: Reading, turn: TurnRow) -> str:
    """The words that opened a turn: a person's, or else the first line of a report. For a backlog
    the number of further messages is added."""
    found = first_text(tx.row("view_turn_request", **turn.span))
    body = None if found is None else body_of("message", found)
    if not isinstance(body, Message):
        return read_headline(tx, turn)
    count = tx.number("turn_backlog_count", **turn.span)
    return phrases.several(body.text, count - 1) if count > 1 else body.text


def read_headline(tx: Reading, turn: TurnRow) -> str:
    """The first line of the report that opened a turn; empty if none did."""
    found = first_text(tx.row("turn_first_report", **turn.span))
    note = None if found is None else body_of("note", found)
    return notes.headline_in(note.text) if isinstance(note, Note) else ""


def moved_ms_of(tx: Reading, session_id: SessionId) -> int:
    """Since when the platform's ids of the session are those of its chat."""
    return tx.number("session_moved", session_id=session_id)


def read_unresolved(tx: Reading, turn_id: TurnId) -> list[CallRecord]:
    """The calls of a turn that have no result, in order."""
    return [call_of(row) for row in tx.rows("calls_unresolved", turn_id=turn_id)]


def is_unresolved(tx: Reading, turn_id: TurnId, call_id: CallId) -> bool:
    """Whether the turn has such a call, and it has no result."""
    return any(record.call.call_id == call_id for record in read_unresolved(tx, turn_id))


def worked_ms_of(tx: Reading, turn: TurnRow) -> int:
    """When the turn was last worked on. While a worker holds it, its last heartbeat."""
    if turn.state is not TurnState.RUNNING:
        return turn.worked_ms
    beat_ms = first_number(tx.row("worker_heartbeat", worker_id=turn.worker_id))
    return turn.worked_ms if beat_ms is None else beat_ms
