"""Everything that happened, in one list: turns, messages, deliveries and jobs, newest first.

Each kind is read backwards by its own ids, and the lists are merged by time. A place in the merged
list is a place in each of them. However rare a match is, one request reads a bounded number of rows
of each kind; its reply says where the next one goes on.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from koboshi.control.narrate import fate_of, fate_of_delivery
from koboshi.control.page_replies import ActivityItem, ActivityList
from koboshi.control.replies import Done, refusal
from koboshi.control.requests import ListActivity
from koboshi.control.rows import NEWEST
from koboshi.domain.ids import SessionId, parse_shown, shown
from koboshi.domain.inbox import EntryKind, EntryState
from koboshi.domain.outbox import UNSETTLED, DeliveryState
from koboshi.domain.people import NOT_ALLOWED
from koboshi.domain.process import ProcessState
from koboshi.domain.reasons import Reason
from koboshi.domain.retry import BY_HAND
from koboshi.domain.route import Route
from koboshi.domain.turn import CLOSED, TurnState
from koboshi.ports.views import EntryView, OwnerViews, Page, TurnView

KINDS = ("turn", "message", "delivery", "process")
LIMIT = 50
LIMIT_MAX = 200
PAGE_ROWS = 100
SCANNED_MAX = 2_000
"""Rows of one kind that one request reads."""
PROCESSES_MAX = 500
TEXT_CHARS_MAX = 300
_UNHEARD = frozenset({"cut", "inbox-full", BY_HAND, NOT_ALLOWED})


@dataclass(slots=True, kw_only=True)
class _Lane:
    """One kind on its way back in time. `before` is where it goes on; None at its end."""

    kind: str
    before: int | None
    found: list[ActivityItem] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    views: OwnerViews
    is_running: bool

    async def answer(self, asked: ListActivity) -> Done:
        places = _places(asked.before)
        kinds = [each for each in asked.kind.split(",") if each] or list(KINDS)
        if places is None or not set(kinds) <= set(KINDS):
            return refusal("bad-request", f"kind is some of {', '.join(KINDS)}; before is a `next`")
        limit = max(1, min(asked.limit or LIMIT, LIMIT_MAX))
        lanes = [
            _Lane(kind=kind, before=places.get(kind, NEWEST if not places else None))
            for kind in kinds
        ]
        for lane in lanes:
            await self._fill(lane, asked, limit)
        return _merged(lanes, limit)

    async def _fill(self, lane: _Lane, asked: ListActivity, limit: int) -> None:
        """Read back until there are enough matches, or enough was read."""
        scanned, is_wanted = 0, _filter(asked)
        while lane.before is not None and len(lane.found) < limit and scanned < SCANNED_MAX:
            rows = [each async for each in self._rows(lane.kind, lane.before)]
            scanned += len(rows)
            lane.found.extend(each for each in rows if is_wanted(each))
            is_past = bool(rows) and asked.since is not None and rows[-1].at_ms < asked.since
            lane.before = _number(rows[-1]) if len(rows) == PAGE_ROWS and not is_past else None

    async def _rows(self, kind: str, before: int) -> AsyncIterator[ActivityItem]:
        page = Page(limit=PAGE_ROWS, before=before)
        match kind:
            case "turn":
                rows = self._turns(page)
            case "message":
                rows = self._messages(page)
            case "delivery":
                rows = self._deliveries(page)
            case _:
                rows = self._processes(before)
        async for item in rows:
            yield item

    async def _turns(self, page: Page) -> AsyncIterator[ActivityItem]:
        for turn in await self.views.turns(page):
            yield ActivityItem(
                kind="turn",
                id=shown("turn", turn.turn_id),
                at_ms=turn.opened_ms,
                ended_ms=turn.closed_ms,
                state=turn.stand or turn.state,
                stands=turn.stands,
                group=_of_turn(turn.state),
                channel=turn.route.channel,
                chat=turn.route.chat,
                text=turn.request[:TEXT_CHARS_MAX],
                note=turn.reason or "",
            )

    async def _messages(self, page: Page) -> AsyncIterator[ActivityItem]:
        routes: dict[SessionId, Route | None] = {}
        entries = await self.views.entries(page)
        named = sorted({each.turn_id for each in entries if each.turn_id is not None})
        turns = {turn.turn_id: turn for turn in await self.views.turns_named(named)}
        for entry in entries:
            turn = None if entry.turn_id is None else turns.get(entry.turn_id)
            route = await self._route(entry.session_id, routes)
            yield ActivityItem(
                kind="message",
                id=shown("message", entry.entry_id),
                at_ms=entry.received_ms,
                state=entry.state,
                stands=entry.stands,
                group=_of_entry(entry.state),
                channel=entry.source if route is None else route.channel,
                chat="" if route is None else route.chat,
                text=entry.text[:TEXT_CHARS_MAX],
                note=entry.sender,
                fate=_fate(entry, turn),
                acts=_acts_on(entry, turn),
                turn=None if entry.turn_id is None else shown("turn", entry.turn_id),
            )

    async def _deliveries(self, page: Page) -> AsyncIterator[ActivityItem]:
        routes: dict[SessionId, Route | None] = {}
        for owed in await self.views.deliveries(page):
            route = await self._route(owed.session_id, routes)
            yield ActivityItem(
                kind="delivery",
                id=shown("delivery", owed.delivery_id),
                at_ms=owed.created_ms,
                ended_ms=owed.settled_ms,
                state=owed.state,
                stands=fate_of_delivery(owed, is_running=self.is_running),
                group=_of_delivery(owed.state),
                channel="" if route is None else route.channel,
                chat="" if route is None else route.chat,
                text=owed.text[:TEXT_CHARS_MAX],
                acts=_acts_on_delivery(owed.state),
                turn=None if owed.turn_id is None else shown("turn", owed.turn_id),
            )

    async def _processes(self, before: int) -> AsyncIterator[ActivityItem]:
        found = await self.views.processes(PROCESSES_MAX)
        older = [each for each in found if each.process.process_id < before]
        for view in sorted(older, key=lambda each: -each.process.process_id)[:PAGE_ROWS]:
            process = view.process
            code = "" if process.exit_code is None else f"exit code {process.exit_code}"
            yield ActivityItem(
                kind="process",
                id=shown("process", process.process_id),
                at_ms=process.started_ms,
                ended_ms=process.ended_ms,
                state=process.state,
                stands=str(process.state),
                group=_of_process(process.state, process.exit_code),
                channel=view.route.channel,
                chat=view.route.chat,
                text=process.command[:TEXT_CHARS_MAX],
                note=code or process.reason or "",
                turn=shown("turn", process.turn_id),
            )

    async def _route(
        self, session_id: SessionId | None, known: dict[SessionId, Route | None]
    ) -> Route | None:
        if session_id is None:
            return None
        if session_id not in known:
            session = await self.views.session(session_id)
            known[session_id] = None if session is None else session.route
        return known[session_id]


def _merged(lanes: list[_Lane], limit: int) -> ActivityList:
    """The newest of all lanes, and where each goes on behind what is shown of it."""
    newest = sorted(
        (each for lane in lanes for each in lane.found), key=lambda each: each.at_ms, reverse=True
    )[:limit]
    taken = {each.id for each in newest}
    places = []
    for lane in lanes:
        left = [each for each in lane.found if each.id not in taken]
        if left:
            # The first one that is not shown is the first of the next page.
            places.append(f"{lane.kind}:{_number(left[0]) + 1}")
        elif lane.before is not None:
            places.append(f"{lane.kind}:{lane.before}")
    return ActivityList(items=tuple(newest), next=",".join(places) or None)


def _places(before: str) -> dict[str, int] | None:
    """Where each kind goes on; None if the text is no place."""
    found = {}
    for each in before.split(",") if before else ():
        kind, _, number = each.partition(":")
        if kind not in KINDS or not (number.isascii() and number.isdigit() and len(number) < 19):
            return None
        found[kind] = int(number)
    return found


def _filter(asked: ListActivity) -> Callable[[ActivityItem], bool]:
    text = asked.text.casefold()

    def is_wanted(item: ActivityItem) -> bool:
        return (
            (not asked.state or asked.state in (item.group, item.state))
            and (not asked.channel or item.channel == asked.channel)
            and (asked.since is None or item.at_ms >= asked.since)
            and (asked.until is None or item.at_ms < asked.until)
            and (not text or text in item.text.casefold() or text in item.chat.casefold())
        )

    return is_wanted


def _number(item: ActivityItem) -> int:
    named = parse_shown(item.id)
    assert named is not None
    return named[1]


def _fate(entry: EntryView, turn: TurnView | None) -> Reason | None:
    """What became of a message that was not answered."""
    is_answered = turn is not None and turn.state == TurnState.DONE
    return None if is_answered or entry.state == EntryState.HANDLED else fate_of(entry, turn)


def _acts_on(entry: EntryView, turn: TurnView | None) -> tuple[str, ...]:
    """What an operator can do about a message. The gateway has the last word when it is done."""
    if entry.kind not in (EntryKind.MESSAGE, EntryKind.IGNORED):
        return ()
    if turn is not None:
        return ("retry",) if turn.state in (TurnState.FAILED, TurnState.STOPPED) else ()
    if entry.kind == EntryKind.MESSAGE and entry.state == EntryState.WAITING:
        return ("drop",)
    return ("retry",) if entry.reason in _UNHEARD else ()


def _acts_on_delivery(state: str) -> tuple[str, ...]:
    if state in (DeliveryState.REJECTED, DeliveryState.ABANDONED):
        return ("retry",)
    return ("retry", "drop") if state in (DeliveryState.OWED, DeliveryState.HELD) else ()


def _of_turn(state: str) -> str:
    if state not in CLOSED:
        return "open"
    return "failed" if state == TurnState.FAILED else "done"


def _of_entry(state: str) -> str:
    return {"waiting": "open", "dropped": "failed"}.get(state, "done")


def _of_delivery(state: str) -> str:
    if state in UNSETTLED:
        return "open"
    return "done" if state == DeliveryState.DELIVERED else "failed"


def _of_process(state: ProcessState, exit_code: int | None) -> str:
    if state in (ProcessState.STARTING, ProcessState.RUNNING):
        return "open"
    return "done" if exit_code == 0 else "failed"
