"""Views for an operator: sessions, turns, entries, deliveries, the journal. No view costs more with
more sessions: each uses an index, or a bounded number of the newest journal lines."""

from collections.abc import Sequence

from koboshi.domain.chat import NO_MARKS, ChatMarks, is_listed, title_of
from koboshi.domain.ids import ChannelName, EntryId, SessionId, TurnId
from koboshi.domain.inbox import Words
from koboshi.domain.standing import stand_words, where_message_stands
from koboshi.domain.transcript import Need, Past
from koboshi.domain.turn import TurnState
from koboshi.domain.worker import Worker
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_text, maybe_number, number, text
from koboshi.kernel.facts import stand_now
from koboshi.kernel.rows import (
    EntryRow,
    TurnRow,
    entry_body,
    entry_of,
    read_entry,
    read_open_turn,
    read_question,
    read_request,
    read_session,
    read_turn,
    step_of,
    turn_of,
    worker_of,
)
from koboshi.kernel.transaction import Reading, Row
from koboshi.kernel.view_rows import call_view, delivery_view, journal_line, said_of, step_view
from koboshi.ports.views import (
    CallView,
    ChatView,
    DeliveryView,
    EntryView,
    JournalLine,
    Page,
    QuestionView,
    SessionView,
    StepView,
    Trace,
    TurnView,
)

LINES_LOOKED_AT = 10_000
LINES_OF_CHATS = 3_000
"""Fewer, because each is joined with its session, and the page asks every few seconds."""


def workers_on(tx: Reading, page: Page) -> tuple[Worker, ...]:
    rows = tx.rows("view_workers", before=page.before, limit=page.limit)
    return tuple(worker_of(row) for row in rows)


def journal_on(tx: Reading, page: Page) -> tuple[JournalLine, ...]:
    place = {"before": page.before, "limit": page.limit}
    if page.is_open:
        rows = tx.rows("view_journal_decided", looked_at=LINES_LOOKED_AT, **place)
    else:
        rows = tx.rows("view_journal", **place)
    return tuple(journal_line(row) for row in rows)


def turns_named(
    tx: Reading, context: VerbContext, turn_ids: Sequence[TurnId]
) -> tuple[TurnView, ...]:
    turns = (read_turn(tx, turn_id) for turn_id in turn_ids)
    return tuple(turn_view(tx, context, turn) for turn in turns if turn is not None)


def turns_before(
    tx: Reading, context: VerbContext, session_id: SessionId, before: int, limit: int
) -> tuple[TurnView, ...]:
    rows = tx.rows("view_turns_before", session_id=session_id, before=before, limit=limit)
    return tuple(turn_view(tx, context, turn_of(row)) for row in rows)


def sessions_named(
    tx: Reading, context: VerbContext, chat: str, limit: int
) -> tuple[SessionView, ...]:
    rows = tx.rows("view_sessions_named", chat=chat, limit=limit)
    return tuple(_session_view(tx, context, row) for row in rows)


def chats_of(
    tx: Reading, context: VerbContext, channel: ChannelName, limit: int
) -> tuple[ChatView, ...]:
    """The chats with recent events, and behind them those that are kept by a mark."""
    rows = tx.rows("view_sessions_touched", channel=channel, looked_at=LINES_OF_CHATS, limit=limit)
    kept = tx.rows("view_sessions_pinned", channel=channel, limit=limit)
    by_id = {row[0]: row[:4] for row in (*rows, *kept)}
    found = (_chat_view(tx, context, row) for row in by_id.values())
    return tuple(each for each in found if each is not None)


def _chat_view(tx: Reading, context: VerbContext, row: Row) -> ChatView | None:
    session, chat, thread, touched_ms = row
    session_id = SessionId(number(session))
    first = tx.row("view_turn_first", session_id=session_id)
    row_newest = tx.row("turn_newest", session_id=session_id, limit=1)
    newest = None if row_newest is None else turn_of(row_newest)
    marks = _marks_of(tx.row("view_chat_marks", session_id=session_id))
    if not is_listed(marks, None if newest is None else newest.opened_ms):
        return None
    stand = "" if newest is None else stand_now(tx, context, newest)
    # What was said before a deletion names nothing any more.
    named_by = first if marks.deleted_ms is None else row_newest
    said = "" if named_by is None else read_request(tx, turn_of(named_by))
    return ChatView(
        chat=text(chat),
        thread=text(thread),
        session_id=session_id,
        title=title_of(marks.title, said),
        state=None if newest is None else newest.state,
        touched_ms=number(touched_ms),
        stand=stand,
        stands=stand_words(stand),
        is_pinned=marks.pinned_ms is not None,
        is_archived=marks.archived_ms is not None,
        is_named=bool(marks.title),
    )


def _marks_of(row: Row | None) -> ChatMarks:
    if row is None:
        return NO_MARKS
    title, pinned_ms, archived_ms, deleted_ms = row
    return ChatMarks(
        title=text(title),
        pinned_ms=maybe_number(pinned_ms),
        archived_ms=maybe_number(archived_ms),
        deleted_ms=maybe_number(deleted_ms),
    )


def questions_open(tx: Reading, context: VerbContext, limit: int) -> tuple[QuestionView, ...]:
    found = []
    for turn_id, expires_ms in tx.rows("view_turns_waiting", limit=limit):
        turn = read_turn(tx, TurnId(number(turn_id)))
        if turn is not None and turn.question_seq is not None:
            found.append(_question_view(tx, context, turn, number(expires_ms)))
    return tuple(found)


def _question_view(
    tx: Reading, context: VerbContext, turn: TurnRow, expires_ms: int
) -> QuestionView:
    assert turn.question_seq is not None
    question = read_question(tx, turn.question_seq)
    asked = tx.row("step_by_seq", seq=turn.question_seq)
    need = tx.row("view_call_need", turn_id=turn.turn_id, call_id=question.call_id)
    return QuestionView(
        turn=turn_view(tx, context, turn),
        question=turn.question_seq,
        author=question.author,
        is_approval=first_text(need) == Need.APPROVAL,
        text=question.text,
        choices=question.choices,
        asked_ms=turn.changed_ms if asked is None else step_of(asked).at_ms,
        expires_ms=expires_ms,
        literal=None if question.sealed is None else (question.sealed.begin, question.sealed.end),
        asked_by="" if question.sealed is None else question.sealed.asked_by,
    )


def steps_of(tx: Reading, turn_id: TurnId, limit: int) -> tuple[StepView, ...]:
    turn = read_turn(tx, turn_id)
    if turn is None:
        return ()
    rows = tx.rows("view_steps_of_turn", **turn.span, limit=limit)
    return tuple(step_view(row) for row in reversed(rows))


def past_of(tx: Reading, channel: ChannelName, chat: str, *, after: int, limit: int) -> Past | None:
    """What was said in a chat in turns whose journal lines were deleted, from the transcript."""
    chat_of = {"channel": channel, "chat": chat}
    ((newest, before_turn),) = tx.rows("view_forgotten", **chat_of)
    forgotten = number(newest)
    if after >= forgotten:
        return None
    rows = tx.rows("view_said_before", **chat_of, before_turn=before_turn, limit=limit)
    return Past(
        seq=forgotten, said=tuple(said_of(each) for each in reversed(rows)), at_ms=tx.now_ms
    )


def sessions_on(tx: Reading, context: VerbContext, page: Page) -> tuple[SessionView, ...]:
    rows = tx.rows("view_sessions", before=page.before, limit=page.limit)
    return tuple(_session_view(tx, context, row) for row in rows)


def session_at(tx: Reading, context: VerbContext, session_id: SessionId) -> SessionView | None:
    row = tx.row("view_session", session_id=session_id)
    return None if row is None else _session_view(tx, context, row)


def turns_on(tx: Reading, context: VerbContext, page: Page) -> tuple[TurnView, ...]:
    query = "view_turns_open" if page.is_open else "view_turns"
    rows = tx.rows(query, before=page.before, limit=page.limit)
    return tuple(turn_view(tx, context, turn_of(row)) for row in rows)


def entries_on(tx: Reading, context: VerbContext, page: Page) -> tuple[EntryView, ...]:
    query = "view_entries_open" if page.is_open else "view_entries"
    rows = tx.rows(query, before=page.before, limit=page.limit)
    return tuple(entry_view(tx, context, entry_of(row)) for row in rows)


def deliveries_on(tx: Reading, page: Page) -> tuple[DeliveryView, ...]:
    query = "view_deliveries_open" if page.is_open else "view_deliveries"
    rows = tx.rows(query, before=page.before, limit=page.limit)
    return tuple(delivery_view(row) for row in rows)


def calls_of(tx: Reading, turn_id: TurnId) -> tuple[CallView, ...]:
    return tuple(call_view(row) for row in tx.rows("view_calls_of_turn", turn_id=turn_id))


def trace_of(tx: Reading, context: VerbContext, entry_id: EntryId) -> Trace | None:
    """One entry from its row to the deliveries that it caused."""
    stored = read_entry(tx, entry_id)
    if stored is None:
        return None
    message = entry_view(tx, context, stored)
    of = message.session_id
    rows = list(tx.rows("view_deliveries_for", session_id=of, entry_id=entry_id))
    turn = None if message.turn_id is None else read_turn(tx, message.turn_id)
    if turn is None:
        deliveries = tuple(delivery_view(each) for each in rows)
        return Trace(message=message, turn=None, calls=(), deliveries=deliveries, lines=())
    place = {"session_id": turn.session_id, "turn_id": turn.turn_id}
    rows += [each for each in tx.rows("view_deliveries_of_turn", **place) if each not in rows]
    said = map(delivery_view, rows)
    return Trace(
        message=message,
        turn=turn_view(tx, context, turn),
        calls=calls_of(tx, turn.turn_id),
        deliveries=tuple(sorted(said, key=lambda each: each.delivery_id)),
        lines=tuple(journal_line(each) for each in tx.rows("view_journal_of_turn", **place)),
    )


def _session_view(tx: Reading, context: VerbContext, row: Row) -> SessionView:
    session_id, created_ms, changed_ms = row
    session = read_session(tx, SessionId(number(session_id)))
    turn = read_open_turn(tx, session.session_id)
    return SessionView(
        session_id=session.session_id,
        route=session.route,
        generation=session.generation,
        settings=session.settings,
        open_turn=None if turn is None else turn_view(tx, context, turn),
        waiting=tx.number("entries_waiting_count", session_id=session.session_id),
        owed=tx.number("deliveries_unsettled_count", session_id=session.session_id),
        created_ms=number(created_ms),
        changed_ms=number(changed_ms),
        aside=session.aside,
    )


def turn_view(tx: Reading, context: VerbContext, turn: TurnRow) -> TurnView:
    stand = stand_now(tx, context, turn)
    waits = turn.state == TurnState.QUEUED and turn.not_before_ms > 0
    session = read_session(tx, turn.session_id)
    return TurnView(
        turn_id=turn.turn_id,
        session_id=turn.session_id,
        route=session.route,
        aside=session.aside,
        state=turn.state,
        event=turn.event,
        reason=turn.reason,
        epoch=turn.epoch,
        recoveries=turn.recoveries,
        crash_streak=turn.crash_streak,
        request=read_request(tx, turn),
        opened_ms=turn.opened_ms,
        changed_ms=turn.changed_ms,
        closed_ms=turn.closed_ms,
        worker_id=turn.worker_id,
        stand=stand,
        stands=stand_words(stand),
        due_ms=turn.not_before_ms if waits else None,
    )


def entry_view(tx: Reading, context: VerbContext, stored: EntryRow) -> EntryView:
    turn = None if stored.turn_id is None else read_turn(tx, stored.turn_id)
    stand = None if turn is None else stand_words(stand_now(tx, context, turn))
    body = entry_body(stored.kind, stored.body)
    return EntryView(
        entry_id=stored.entry_id,
        session_id=stored.session_id,
        turn_id=stored.turn_id,
        kind=stored.kind,
        state=stored.state,
        reason=stored.reason,
        source=stored.source,
        external_id=stored.external_id,
        sender=stored.sender,
        text=body.text if isinstance(body, Words) else body.headline,
        received_ms=stored.received_ms,
        stands=where_message_stands(stored.state, stand),
    )
