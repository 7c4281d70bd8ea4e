"""What people and programs may look at, each look one consistent moment."""

from collections.abc import Sequence

import apsw

from koboshi.domain.ids import ChannelName, DeliveryId, EntryId, ProcessId, SessionId, TurnId
from koboshi.domain.process import Process
from koboshi.domain.route import Route
from koboshi.domain.transcript import Body, Message
from koboshi.ports.views import (
    DeliveryView,
    EntryView,
    Event,
    Explanation,
    JournalLine,
    ProcessView,
    Shown,
    Status,
    TurnView,
)
from koboshi.stores.sqlite.facts import breaker_now, facts_of, policy_of
from koboshi.stores.sqlite.ground import Ground
from koboshi.stores.sqlite.judge import verdict_over
from koboshi.stores.sqlite.reader import Readers
from koboshi.stores.sqlite.rows import (
    TurnRow,
    body_of,
    choices_of,
    maybe_number,
    maybe_text,
    number,
    process_of,
    report_of,
    text,
    turn_of,
    watcher_of,
    words_of,
    worker_of,
)
from koboshi.stores.sqlite.sessions import find_session
from koboshi.stores.sqlite.transaction import Reading, Row
from koboshi.stores.sqlite.writes import read_request, read_session, read_turn


class SqliteViews:
    def __init__(self, readers: Readers, ground: Ground) -> None:
        self._readers = readers
        self._ground = ground

    async def status(self) -> Status:
        def look(tx: Reading) -> Status:
            workers = [worker_of(row) for row in tx.rows("worker_newest", limit=2)]
            return Status(
                worker=workers[0] if workers else None,
                previous=workers[1] if len(workers) > 1 else None,
                turns={
                    text(state): number(count) for state, count in tx.rows("turns_alive_by_state")
                },
                inbox_waiting=tx.number("count_waiting"),
                outbox_unsettled=tx.number("count_unsettled"),
                sessions=tx.number("count_sessions"),
                sqlite=apsw.sqlite_lib_version(),
                breaker=breaker_now(tx, self._ground)[0],
            )

        return await self._readers.read(look)

    async def turns_of(self, session_id: SessionId, limit: int) -> tuple[TurnView, ...]:
        def look(tx: Reading) -> tuple[TurnView, ...]:
            rows = tx.rows("turn_newest", session_id=session_id, limit=limit)
            return tuple(_turn_view(tx, turn_of(row)) for row in rows)

        return await self._readers.read(look)

    async def session_of(self, route: Route) -> SessionId | None:
        session = await self._readers.read(lambda tx: find_session(tx, route))
        return None if session is None else session.session_id

    async def entry(self, entry_id: EntryId) -> EntryView | None:
        row = await self._readers.read(lambda tx: tx.row("view_entry", entry_id=entry_id))
        return None if row is None else _entry_view(row)

    async def entry_by_external_id(self, external_id: str) -> EntryView | None:
        row = await self._readers.read(
            lambda tx: tx.row("view_entry_by_external_id", external_id=external_id)
        )
        return None if row is None else _entry_view(row)

    async def delivery(self, delivery_id: DeliveryId) -> DeliveryView | None:
        row = await self._readers.read(lambda tx: tx.row("view_delivery", delivery_id=delivery_id))
        return None if row is None else _delivery_view(row)

    async def explain(self, turn_id: TurnId) -> Explanation | None:
        return await self._readers.read(lambda tx: _explain(tx, self._ground, turn_id))

    async def processes(self, limit: int) -> tuple[ProcessView, ...]:
        def look(tx: Reading) -> tuple[ProcessView, ...]:
            rows = tx.rows("view_processes", limit=limit)
            return tuple(_process_view(tx, process_of(row)) for row in rows)

        return await self._readers.read(look)

    async def process(self, process_id: ProcessId) -> ProcessView | None:
        def look(tx: Reading) -> ProcessView | None:
            row = tx.row("process_by_id", process_id=process_id)
            return None if row is None else _process_view(tx, process_of(row))

        return await self._readers.read(look)

    async def reports_of(self, process_id: ProcessId) -> tuple[EntryView, ...]:
        first, behind = f"{process_id}:", f"{process_id};"
        rows = await self._readers.read(
            lambda tx: tx.rows("view_reports_of", first=first, behind=behind)
        )
        return tuple(_entry_view(row) for row in rows)

    async def events(
        self, channel: ChannelName, chat: str, *, after: int, limit: int
    ) -> Sequence[Event]:
        rows = await self._readers.read(
            lambda tx: tx.rows("view_events", channel=channel, chat=chat, after=after, limit=limit)
        )
        return tuple(_event(row) for row in rows)

    async def chats_touched(
        self, channel: ChannelName, *, after: int
    ) -> tuple[int, frozenset[str]]:
        def look(tx: Reading) -> tuple[int, frozenset[str]]:
            rows = tx.rows("view_chats_touched", channel=channel, after=after)
            return tx.number("view_newest_line"), frozenset(text(row[0]) for row in rows)

        return await self._readers.read(look)

    async def place_before(self, channel: ChannelName, chat: str, *, lines: int) -> int:
        row = await self._readers.read(
            lambda tx: tx.row("view_place_before", channel=channel, chat=chat, lines=lines)
        )
        return 0 if row is None else number(row[0])

    async def last_event(self, channel: ChannelName, chat: str) -> int:
        return await self._readers.read(
            lambda tx: tx.number("view_last_event", channel=channel, chat=chat)
        )


def _turn_view(tx: Reading, turn: TurnRow) -> TurnView:
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
    )


def _process_view(tx: Reading, process: Process) -> ProcessView:
    rows = tx.rows("watchers_of_process", process_id=process.process_id)
    return ProcessView(
        process=process,
        route=read_session(tx, process.session_id).route,
        watchers=tuple(watcher_of(row) for row in rows),
    )


def _explain(tx: Reading, ground: Ground, turn_id: TurnId) -> Explanation | None:
    turn = read_turn(tx, turn_id)
    if turn is None:
        return None
    facts = why = None
    if turn.closed_ms is None:
        session = read_session(tx, turn.session_id)
        facts = facts_of(tx, ground, turn, session)
        why = verdict_over(facts, policy_of(ground, session))
    place = {"session_id": turn.session_id, "turn_id": turn_id}
    return Explanation(
        turn=_turn_view(tx, turn),
        facts=facts,
        why=why,
        lines=tuple(journal_line(row) for row in tx.rows("view_journal_of_turn", **place)),
        entries=tuple(_entry_view(row) for row in tx.rows("view_entries_of_turn", turn_id=turn_id)),
        deliveries=tuple(
            _delivery_view(row) for row in tx.rows("view_deliveries_of_turn", **place)
        ),
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


def _event(row: Row) -> Event:
    channel, chat, thread, kind, body, words, sender = row[12:19]
    said: Body | None = None
    if kind is not None:
        said = body_of(kind, body)
    elif words is not None and row[6] in ("message", "command"):
        said = _message(row[3], words, sender)
    return Event(
        line=journal_line(row),
        route=Route(channel=ChannelName(text(channel)), chat=text(chat), thread=text(thread)),
        body=said,
        delivery=None if row[19] is None else _shown(row),
    )


def _message(entry_id: object, words: object, sender: object) -> Message:
    said = words_of(str(words))
    return Message(
        text=said.text,
        sender=str(sender),
        entry_id=EntryId(int(str(entry_id))),
        sent_ms=said.sent_ms,
    )


def _shown(row: Row) -> Shown:
    cause, part, parts, words, choices, question, labelled = row[19:]
    return Shown(
        delivery_id=DeliveryId(number(row[3])),
        cause=text(cause),
        part=number(part),
        parts=number(parts),
        text=text(words),
        choices=choices_of(choices),
        question=maybe_number(question),
        may_be_duplicate=bool(labelled),
    )


def _entry_view(row: Row) -> EntryView:
    entry_id, session_id, turn_id, kind, state, reason, source, external_id = row[:8]
    sender, body, received_ms = row[8:]
    session, turn = maybe_number(session_id), maybe_number(turn_id)
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
    )


def _delivery_view(row: Row) -> DeliveryView:
    delivery_id, session_id, turn_id, cause, part, parts, state, reason = row[:8]
    attempts, platform_id, words, created_ms, settled_ms = row[8:]
    turn = maybe_number(turn_id)
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
    )
