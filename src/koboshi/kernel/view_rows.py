"""Rows as people and programs see them: the decoders behind the views."""

from koboshi.domain.ids import ChannelName, DeliveryId, EntryId, Seq, SessionId, TurnId
from koboshi.domain.inbox import EntryKind
from koboshi.domain.route import Route
from koboshi.domain.transcript import KIND_OF, Body, Message, PastWords, Reply, Result
from koboshi.kernel.decode import (
    body_of,
    choices_of,
    file_of,
    literal_of,
    maybe_number,
    maybe_text,
    number,
    text,
    words_of,
)
from koboshi.kernel.rows import call_of, step_of
from koboshi.kernel.transaction import Row
from koboshi.ports.views import CallView, DeliveryView, Event, JournalLine, Shown, StepView

STEP_CHARS_MAX = 16_000
SHOWN_FROM = 20
"""Where the columns of the delivery begin in a row of `view_events`."""


def call_view(row: Row) -> CallView:
    *columns, outcome, exit_code = row
    record = call_of(tuple(columns))
    return CallView(
        call_id=record.call.call_id,
        tool=record.call.tool,
        effect=record.call.effect,
        approved_by=record.approved_by,
        started_ms=record.started_ms,
        finished_ms=record.finished_ms,
        skipped_ms=record.skipped_ms,
        outcome=maybe_text(outcome),
        exit_code=maybe_number(exit_code),
    )


def journal_line(row: Row) -> JournalLine:
    seq, at_ms, subject, subject_number, event, before, after, rule, reason, *where = row
    session, turn, worker_id = where
    session_id, turn_id = maybe_number(session), maybe_number(turn)
    return JournalLine(
        seq=number(seq),
        at_ms=number(at_ms),
        subject=text(subject),
        number=number(subject_number),
        event=text(event),
        before=maybe_text(before),
        after=maybe_text(after),
        rule=maybe_text(rule),
        reason=maybe_text(reason),
        session_id=None if session_id is None else SessionId(session_id),
        turn_id=None if turn_id is None else TurnId(turn_id),
        worker_id=maybe_number(worker_id),
    )


def delivery_view(row: Row) -> DeliveryView:
    delivery_id, session_id, turn_id, cause, part, parts, state, reason, *rest = row
    attempts, platform_id, words, created_ms, settled_ms, not_before_ms = rest
    turn, due_ms = maybe_number(turn_id), number(not_before_ms)
    waits = settled_ms is None and due_ms > 0
    return DeliveryView(
        delivery_id=DeliveryId(number(delivery_id)),
        session_id=SessionId(number(session_id)),
        turn_id=None if turn is None else TurnId(turn),
        cause=text(cause),
        part=number(part),
        parts=number(parts),
        state=text(state),
        reason=maybe_text(reason),
        attempts=number(attempts),
        platform_id=maybe_text(platform_id),
        text=text(words),
        created_ms=number(created_ms),
        settled_ms=maybe_number(settled_ms),
        due_ms=due_ms if waits else None,
    )


def step_view(row: Row) -> StepView:
    *columns, cause = row
    step = step_of(tuple(columns))
    body = step.body
    said = body.text if len(body.text) <= STEP_CHARS_MAX else f"{body.text[:STEP_CHARS_MAX]}…"
    return StepView(
        seq=step.seq,
        kind=KIND_OF[type(body)],
        cause=text(cause),
        text=said,
        at_ms=step.at_ms,
        call_id=body.call_id if isinstance(body, Result) else None,
        status=body.status if isinstance(body, Result) else None,
        calls=body.calls if isinstance(body, Reply) else (),
    )


def said_of(row: Row) -> PastWords:
    seq, kind, body, at_ms, turn_id, thread = row
    return PastWords(
        seq=Seq(number(seq)),
        turn_id=TurnId(number(turn_id)),
        thread=text(thread),
        body=body_of(kind, body),
        at_ms=number(at_ms),
    )


def event_of(row: Row) -> Event:
    """A line of the journal with the words that belong to it."""
    *columns, channel, chat, thread, kind, body, words, sender, took_ms = row[:SHOWN_FROM]
    line = journal_line(tuple(columns))
    said: Body | None = None
    if kind is not None:
        said = body_of(kind, body)
    elif words is not None and line.after in (EntryKind.MESSAGE, EntryKind.COMMAND):
        heard = words_of(words)
        entry_id = EntryId(line.number)
        said = Message(
            text=heard.text,
            sender=text(sender),
            entry_id=entry_id,
            sent_ms=heard.sent_ms,
            files=heard.files,
        )
    return Event(
        line=line,
        route=Route(channel=ChannelName(text(channel)), chat=text(chat), thread=text(thread)),
        body=said,
        took_ms=maybe_number(took_ms),
        delivery=_shown(DeliveryId(line.number), row[SHOWN_FROM:]),
    )


def _shown(delivery_id: DeliveryId, columns: Row) -> Shown | None:
    """What a line of a delivery shows; None for every other line."""
    cause, part, parts, words, choices, question, labelled, file, literal = columns
    if cause is None:
        return None
    return Shown(
        delivery_id=delivery_id,
        cause=text(cause),
        part=number(part),
        parts=number(parts),
        text=text(words),
        choices=choices_of(choices),
        question=maybe_number(question),
        may_be_duplicate=bool(labelled),
        literal=literal_of(literal),
        file=None if file is None else file_of(file),
    )
