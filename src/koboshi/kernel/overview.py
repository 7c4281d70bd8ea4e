"""What an operator looks at, for all sessions at once. No look costs more because there are many
sessions: each goes by an index, or over a bounded number of the newest journal lines."""

from collections.abc import Sequence

from koboshi.domain.ids import ChannelName, Seq, SessionId, TurnId
from koboshi.domain.standing import stand_words
from koboshi.domain.transcript import Need, Past, Reply, Result, Said
from koboshi.domain.worker import Worker
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import TurnRow, body_of, number, step_of, text, turn_of, worker_of
from koboshi.kernel.facts import stand_now
from koboshi.kernel.read import read_question, read_request, read_turn
from koboshi.kernel.transaction import Reading, Row
from koboshi.kernel.view_rows import journal_line, session_at, turn_view
from koboshi.ports.views import (
    ChatView,
    JournalLine,
    Page,
    QuestionView,
    SessionView,
    StepView,
    TurnView,
)

LINES_LOOKED_AT = 10_000
LINES_OF_CHATS = 3_000
"""Fewer, because each is looked up with its session, and somebody asks every few seconds."""
STEP_CHARS_MAX = 16_000
TITLE_CHARS_MAX = 120


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
    views = (session_at(tx, context, SessionId(number(row[0]))) for row in rows)
    return tuple(view for view in views if view is not None)


def chats_of(
    tx: Reading, context: VerbContext, channel: ChannelName, limit: int
) -> tuple[ChatView, ...]:
    rows = tx.rows("view_sessions_touched", channel=channel, looked_at=LINES_OF_CHATS, limit=limit)
    return tuple(_chat_view(tx, context, row) for row in rows)


def _chat_view(tx: Reading, context: VerbContext, row: Row) -> ChatView:
    session_id = SessionId(number(row[0]))
    first = tx.row("view_turn_first", session_id=session_id)
    row_newest = tx.row("turn_newest", session_id=session_id, limit=1)
    newest = None if row_newest is None else turn_of(row_newest)
    stand = "" if newest is None else stand_now(tx, context, newest)
    return ChatView(
        chat=text(row[1]),
        thread=text(row[2]),
        session_id=session_id,
        title="" if first is None else read_request(tx, turn_of(first))[:TITLE_CHARS_MAX],
        state=None if newest is None else newest.state,
        touched_ms=number(row[3]),
        stand=stand,
        stands=stand_words(stand),
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
        is_approval=need is not None and need[0] == Need.APPROVAL,
        text=question.text,
        choices=question.choices,
        asked_ms=turn.changed_ms if asked is None else step_of(asked).at_ms,
        expires_ms=expires_ms,
    )


def steps_of(tx: Reading, turn_id: TurnId, limit: int) -> tuple[StepView, ...]:
    turn = read_turn(tx, turn_id)
    if turn is None:
        return ()
    rows = tx.rows(
        "view_steps_of_turn",
        session_id=turn.session_id,
        first_seq=turn.first_seq,
        turn_id=turn_id,
        limit=limit,
    )
    return tuple(_step_view(row) for row in reversed(rows))


def _step_view(row: Row) -> StepView:
    seq, kind, cause, stored, at_ms = row
    body = body_of(kind, stored)
    said = body.text if len(body.text) <= STEP_CHARS_MAX else f"{body.text[:STEP_CHARS_MAX]}…"
    return StepView(
        seq=number(seq),
        kind=text(kind),
        cause=text(cause),
        text=said,
        at_ms=number(at_ms),
        call_id=body.call_id if isinstance(body, Result) else None,
        status=body.status if isinstance(body, Result) else None,
        calls=body.calls if isinstance(body, Reply) else (),
    )


def past_of(tx: Reading, channel: ChannelName, chat: str, *, after: int, limit: int) -> Past | None:
    """What was said in a chat in turns of which no line is kept, from the transcript."""
    chat_of = {"channel": channel, "chat": chat}
    (row,) = tx.rows("view_forgotten", **chat_of)
    forgotten, before_turn = number(row[0]), number(row[1])
    if after >= forgotten:
        return None
    rows = tx.rows("view_said_before", **chat_of, before_turn=before_turn, limit=limit)
    return Past(seq=forgotten, said=tuple(_said(each) for each in reversed(rows)), at_ms=tx.now_ms)


def _said(row: Row) -> Said:
    seq, kind, body, at_ms, turn_id, thread = row
    return Said(
        seq=Seq(number(seq)),
        turn_id=TurnId(number(turn_id)),
        thread=text(thread),
        body=body_of(kind, body),
        at_ms=number(at_ms),
    )
