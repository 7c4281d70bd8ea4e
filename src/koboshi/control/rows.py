"""Rows, as the owner of the home is asked about them."""

from dataclasses import dataclass
from typing import assert_never

from koboshi.control.narrate import worded
from koboshi.control.replies import (
    DeliveryList,
    DeliveryShown,
    Done,
    LineList,
    MessageList,
    MessageShown,
    Refusal,
    SessionList,
    SessionShown,
    TraceReply,
    TurnList,
    TurnShown,
    WorkerList,
    refusal,
)
from koboshi.control.requests import ListRows, ShowRow, TraceMessage
from koboshi.domain.ids import (
    PREFIXES,
    DeliveryId,
    EntryId,
    GoalId,
    ProcessId,
    ScheduleId,
    SessionId,
    TurnId,
    parse_shown,
    shown,
)
from koboshi.ports.views import EntryView, OwnerViews, Page, SessionView, TurnView

LIMIT = 50
LIMIT_MAX = 500
TURNS_OF_SESSION = 10
NEWEST = 1 << 62
"""Behind every id there can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowViews:
    """What can be seen of rows."""

    views: OwnerViews

    async def answer(self, request: ListRows | ShowRow | TraceMessage) -> Done:
        match request:
            case ListRows():
                return await self.list(request)
            case ShowRow():
                return await self._show(request)
            case TraceMessage(what=what):
                return await self._trace(what)
            case never:
                assert_never(never)

    async def list(self, asked: ListRows) -> Done:
        views, page, kind = self.views, page_of(asked), asked.kind
        if page is None:
            return no_such_page(asked)
        match kind:
            case "turn":
                turns = await self._turns(asked, page)
                following = next_page(kind, [turn.turn_id for turn in turns], page)
                return TurnList(turns=turns, next=following)
            case "session":
                sessions = await self._sessions(asked, page)
                following = next_page(kind, [each.session_id for each in sessions], page)
                # What was searched for comes by name, and has no next page: more letters help.
                return SessionList(sessions=sessions, next=None if asked.chat else following)
            case "message":
                entries = await views.entries(page)
                following = next_page(kind, [entry.entry_id for entry in entries], page)
                return MessageList(messages=entries, next=following)
            case "delivery":
                owed = await views.deliveries(page)
                following = next_page(kind, [each.delivery_id for each in owed], page)
                return DeliveryList(deliveries=owed, next=following)
            case "worker":
                boots = await views.workers(page)
                following = next_page(kind, [boot.worker_id for boot in boots], page)
                return WorkerList(workers=boots, next=following)
            case "line":
                lines = await views.journal(page)
                following = next_page(kind, [line.seq for line in lines], page)
                return LineList(lines=worded(lines), next=following)
            case other:
                return refusal("bad-request", f"there is no list of {other!r}")

    async def _turns(self, asked: ListRows, page: Page) -> tuple[TurnView, ...]:
        """Of all sessions, or of one."""
        session = number_in("session", asked.session)
        if session is None:
            return await self.views.turns(page)
        return await self.views.turns_before(
            SessionId(session), before=page.before, limit=page.limit
        )

    async def _sessions(self, asked: ListRows, page: Page) -> tuple[SessionView, ...]:
        """The newest, or those whose chat begins with some letters."""
        if asked.chat:
            return await self.views.sessions_named(asked.chat, page.limit)
        return await self.views.sessions(page)

    async def _show(self, asked: ShowRow) -> Done:
        kind, what = asked.kind, asked.what
        found: Done | None = None
        number = number_in(kind, what)
        match kind:
            case _ if number is None:
                pass
            case "turn":
                found = await self.turn(TurnId(number))
            case "session":
                found = await self._session(SessionId(number))
            case "message":
                found = await self.message(EntryId(number))
            case "delivery":
                found = await self.delivery(DeliveryId(number))
            case other:
                return refusal("bad-request", f"there is no {other!r} to show")
        return found or not_found(kind, what)

    async def turn(self, turn_id: TurnId) -> TurnShown | None:
        explained = await self.views.explain(turn_id)
        if explained is None:
            return None
        return TurnShown(
            turn=explained.turn,
            messages=explained.entries,
            calls=await self.views.calls_of(turn_id),
            deliveries=explained.deliveries,
        )

    async def _session(self, session_id: SessionId) -> SessionShown | None:
        session = await self.views.session(session_id)
        if session is None:
            return None
        turns = await self.views.turns_of(session_id, TURNS_OF_SESSION)
        return SessionShown(session=session, turns=turns)

    async def message(self, entry_id: EntryId) -> MessageShown | None:
        entry = await self.views.entry(entry_id)
        return None if entry is None else MessageShown(message=entry)

    async def delivery(self, delivery_id: DeliveryId) -> DeliveryShown | None:
        delivery = await self.views.delivery(delivery_id)
        return None if delivery is None else DeliveryShown(delivery=delivery)

    async def _entry_of(self, what: str) -> EntryView | None:
        """The message behind something of ours: itself, or the first one of its turn."""
        kind, number = parse_shown(what) or ("", 0)
        turn_id: TurnId | None = None
        match kind:
            case "message":
                return await self.views.entry(EntryId(number))
            case "turn":
                turn_id = TurnId(number)
            case "delivery":
                delivery = await self.views.delivery(DeliveryId(number))
                turn_id = None if delivery is None else delivery.turn_id
            case "process":
                view = await self.views.process(ProcessId(number))
                turn_id = None if view is None else view.process.turn_id
            case "schedule":
                timed = await self.views.schedule(ScheduleId(number), 1)
                newest = timed.occasions[0].entry_id if timed and timed.occasions else None
                return None if newest is None else await self.views.entry(EntryId(newest))
            case "goal":
                goal = await self.views.goal(GoalId(number))
                turn_id = None if goal is None else goal.goal.judged_turn
            case "session":
                turns = await self.views.turns_of(SessionId(number), 1)
                turn_id = turns[0].turn_id if turns else None
            case _:
                return None
        told = None if turn_id is None else await self.views.explain(turn_id)
        return None if told is None or not told.entries else told.entries[0]

    async def _trace(self, what: str) -> Done:
        """By a platform's own id of a message, or by any of ours."""
        views = self.views
        entry = await views.entry_by_external_id(what) or await self._entry_of(what)
        trace = None if entry is None else await views.trace(entry.entry_id)
        if trace is None:
            words = (
                f'no message "{what}" has arrived; a platform\'s own id is meant '
                "(of Telegram: chat/message), or an id of ours: m1, t1, d1, p1, s1, c1, g1"
            )
            return refusal("not-found", words)
        return TraceReply(
            message=trace.message,
            turn=trace.turn,
            calls=trace.calls,
            deliveries=trace.deliveries,
            lines=worded(trace.lines),
        )


def page_of(asked: ListRows) -> Page | None:
    """Which rows are asked for; None if they begin before something that is no id."""
    number = number_in(asked.kind, asked.before) if asked.before else NEWEST
    if number is None:
        return None
    wanted = LIMIT if asked.limit is None else asked.limit
    return Page(limit=max(1, min(wanted, LIMIT_MAX)), before=number, is_open=asked.open)


def next_page(kind: str, ids: list[int], page: Page) -> str | None:
    """Before which row the next page begins; None if this was the last."""
    return _named(kind, ids[-1]) if len(ids) == page.limit else None


def no_such_page(asked: ListRows) -> Refusal:
    return refusal("bad-request", f'"{asked.before}" is no {asked.kind}; `list` shows them')


def not_found(kind: str, what: str) -> Refusal:
    words = f'there is no {kind} "{what}"; `list` shows them, as {_named(kind, 1)}'
    return refusal("not-found", words)


def _named(kind: str, number: int) -> str:
    """Boots and journal lines are known by their bare numbers."""
    return shown(kind, number) if kind in PREFIXES else str(number)


def number_in(kind: str, text: str) -> int | None:
    if kind not in PREFIXES:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    named = parse_shown(text)
    return named[1] if named is not None and named[0] == kind else None
