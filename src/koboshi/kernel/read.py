"""Single rows, read inside a transaction."""

from koboshi.domain import notes, phrases
from koboshi.domain.ids import CallId, Seq, SessionId, TurnId, WorkerId
from koboshi.domain.route import Route
from koboshi.domain.session import Session
from koboshi.domain.transcript import Message, Note, Question
from koboshi.kernel.decode import TurnRow, body_of, call_of, session_of, turn_of
from koboshi.kernel.transaction import Reading


def read_session(tx: Reading, session_id: SessionId) -> Session:
    row = tx.row("session_by_id", session_id=session_id)
    assert row is not None, "a row refers to a session that is not there"
    return session_of(row)


def find_session(tx: Reading, route: Route) -> Session | None:
    row = tx.row("session_by_route", channel=route.channel, chat=route.chat, thread=route.thread)
    return None if row is None else session_of(row)


def read_turn(tx: Reading, turn_id: TurnId) -> TurnRow | None:
    row = tx.row("turn_by_id", turn_id=turn_id)
    return None if row is None else turn_of(row)


def is_gone(tx: Reading, worker_id: WorkerId | None) -> bool:
    """Whether a worker has ended, so that what it held is for anybody to take. Its row says so, and
    nothing else does: whoever takes a home over ends the workers that it finds there first."""
    return worker_id is None or tx.row("worker_gone", worker_id=worker_id) is not None


def read_open_turn(tx: Reading, session_id: SessionId) -> TurnRow | None:
    row = tx.row("turn_open", session_id=session_id)
    return None if row is None else turn_of(row)


def read_question(tx: Reading, seq: Seq) -> Question:
    row = tx.row("step_by_seq", seq=seq)
    assert row is not None, "a turn waits for a question that is not there"
    body = body_of(row[4], row[5])
    assert isinstance(body, Question)
    return body


def read_last_question(tx: Reading, turn: TurnRow) -> Question | None:
    """The question that a turn asked last, answered or not."""
    row = tx.row(
        "question_newest",
        session_id=turn.session_id,
        first_seq=turn.first_seq,
        turn_id=turn.turn_id,
    )
    body = None if row is None else body_of("question", row[0])
    return body if isinstance(body, Question) else None


def read_request(tx: Reading, turn: TurnRow) -> str:
    """The words that opened a turn: a person's, or else the first line of a report. Where the turn
    answers a backlog, it is said how many messages followed them."""
    place = {
        "session_id": turn.session_id,
        "first_seq": turn.first_seq,
        "turn_id": turn.turn_id,
    }
    row = tx.row("view_turn_request", **place)
    body = None if row is None else body_of("message", row[0])
    if not isinstance(body, Message):
        return read_headline(tx, turn)
    count = tx.number("turn_backlog_count", **place)
    return phrases.several(body.text, count - 1) if count > 1 else body.text


def read_headline(tx: Reading, turn: TurnRow) -> str:
    """The first line of the report that opened a turn; empty if none did."""
    place = {
        "session_id": turn.session_id,
        "first_seq": turn.first_seq,
        "turn_id": turn.turn_id,
    }
    row = tx.row("turn_first_report", **place)
    note = None if row is None else body_of("note", row[0])
    return notes.headline_in(note.text) if isinstance(note, Note) else ""


def moved_ms_of(tx: Reading, session_id: SessionId) -> int:
    """Since when the platform's ids of the session are those of its chat."""
    return tx.number("session_moved", session_id=session_id)


def is_unresolved(tx: Reading, turn_id: TurnId, call_id: CallId) -> bool:
    """Whether the turn has such a call, and it has no result."""
    rows = tx.rows("calls_unresolved", turn_id=turn_id)
    return any(call_of(row).call.call_id == call_id for row in rows)
