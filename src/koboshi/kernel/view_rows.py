"""Rows as people and programs see them."""

from koboshi.domain.ids import DeliveryId, EntryId, SessionId, TurnId
from koboshi.domain.standing import stand_words, where_message_stands
from koboshi.domain.turn import TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import (
    TurnRow,
    maybe_number,
    maybe_text,
    number,
    report_of,
    text,
    turn_of,
    words_of,
)
from koboshi.kernel.facts import stand_now
from koboshi.kernel.read import read_open_turn, read_request, read_session, read_turn
from koboshi.kernel.transaction import Reading, Row
from koboshi.ports.views import (
    CallView,
    DeliveryView,
    EntryView,
    JournalLine,
    Page,
    SessionView,
    Trace,
    TurnView,
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
    return tuple(entry_view(tx, context, row) for row in rows)


def deliveries_on(tx: Reading, page: Page) -> tuple[DeliveryView, ...]:
    query = "view_deliveries_open" if page.is_open else "view_deliveries"
    rows = tx.rows(query, before=page.before, limit=page.limit)
    return tuple(delivery_view(row) for row in rows)


def calls_of(tx: Reading, turn_id: TurnId) -> tuple[CallView, ...]:
    return tuple(_call_view(row) for row in tx.rows("view_calls_of_turn", turn_id=turn_id))


def trace_of(tx: Reading, context: VerbContext, entry_id: EntryId) -> Trace | None:
    """The way of one entry, from its row to what was said because of it."""
    row = tx.row("view_entry", entry_id=entry_id)
    if row is None:
        return None
    message = entry_view(tx, context, row)
    of = message.session_id
    rows = list(tx.rows("view_deliveries_for", session_id=of, entry_id=entry_id))
    turn = None if message.turn_id is None else read_turn(tx, message.turn_id)
    if turn is None:
        deliveries = tuple(delivery_view(each) for each in rows)
        return Trace(message=message, turn=None, calls=(), deliveries=deliveries, lines=())
    place = {"session_id": turn.session_id, "turn_id": turn.turn_id}
    rows += [each for each in tx.rows("view_deliveries_of_turn", **place) if each not in rows]
    return Trace(
        message=message,
        turn=turn_view(tx, context, turn),
        calls=calls_of(tx, turn.turn_id),
        deliveries=tuple(delivery_view(each) for each in sorted(rows, key=_delivery_number)),
        lines=tuple(journal_line(each) for each in tx.rows("view_journal_of_turn", **place)),
    )


def _delivery_number(row: Row) -> int:
    return number(row[0])


def _session_view(tx: Reading, context: VerbContext, row: Row) -> SessionView:
    session = read_session(tx, SessionId(number(row[0])))
    turn = read_open_turn(tx, session.session_id)
    return SessionView(
        session_id=session.session_id,
        route=session.route,
        generation=session.generation,
        settings=session.settings,
        open_turn=None if turn is None else turn_view(tx, context, turn),
        waiting=tx.number("entries_waiting_count", session_id=session.session_id),
        owed=tx.number("deliveries_unsettled_count", session_id=session.session_id),
        created_ms=number(row[1]),
        changed_ms=number(row[2]),
    )


def _call_view(row: Row) -> CallView:
    call_id, tool, effect, approved_by, started_ms, finished_ms, skipped_ms, outcome = row
    return CallView(
        call_id=text(call_id),
        tool=text(tool),
        effect=text(effect),
        approved_by=maybe_text(approved_by),
        started_ms=maybe_number(started_ms),
        finished_ms=maybe_number(finished_ms),
        skipped_ms=maybe_number(skipped_ms),
        outcome=maybe_text(outcome),
    )


def turn_view(tx: Reading, context: VerbContext, turn: TurnRow) -> TurnView:
    stand = stand_now(tx, context, turn)
    waits = turn.state == TurnState.QUEUED and turn.not_before_ms > 0
    return TurnView(
        turn_id=turn.turn_id,
        session_id=turn.session_id,
        route=read_session(tx, turn.session_id).route,
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


def journal_line(row: Row) -> JournalLine:
    seq, at_ms, subject, subject_number, event, before, after, rule, reason = row[:9]
    session_id, turn_id = maybe_number(row[9]), maybe_number(row[10])
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
        worker_id=maybe_number(row[11]),
    )


def entry_view(tx: Reading, context: VerbContext, row: Row) -> EntryView:
    entry_id, session_id, turn_id, kind, state, reason, source, external_id = row[:8]
    sender, body, received_ms = row[8:]
    session, turn = maybe_number(session_id), maybe_number(turn_id)
    found = None if turn is None else read_turn(tx, TurnId(turn))
    stand = None if found is None else stand_words(stand_now(tx, context, found))
    return EntryView(
        entry_id=EntryId(number(entry_id)),
        session_id=None if session is None else SessionId(session),
        turn_id=None if turn is None else TurnId(turn),
        kind=text(kind),
        state=text(state),
        reason=maybe_text(reason),
        source=text(source),
        external_id=text(external_id),
        sender=text(sender),
        text=report_of(body).headline if kind == "report" else words_of(body).text,
        received_ms=number(received_ms),
        stands=where_message_stands(text(state), stand),
    )


def delivery_view(row: Row) -> DeliveryView:
    delivery_id, session_id, turn_id, cause, part, parts, state, reason = row[:8]
    attempts, platform_id, words, created_ms, settled_ms, not_before_ms = row[8:]
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
