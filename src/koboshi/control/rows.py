"""Rows, as the owner of the home is asked about them, and what an operator does to them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias

from koboshi.domain.ids import PREFIXES, DeliveryId, EntryId, SessionId, TurnId, parse_shown, shown
from koboshi.ports.views import OwnerViews, Page, SessionView, TurnView

Answer: TypeAlias = Mapping[str, object]

LIMIT = 50
LIMIT_MAX = 500
TURNS_OF_SESSION = 10
NEWEST = 1 << 62
"""Behind every id there can be."""


def refusal(kind: str, message: str) -> Answer:
    """The answer that there is none."""
    return {"ok": False, "error": {"type": kind, "message": message}}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRequests:
    """One look at rows. `kind` is turn, session, message, delivery, worker or line."""

    views: OwnerViews
    kind: str
    what: str
    request: Mapping[str, object]

    async def answer(self, asked: object) -> Answer | None:
        """The answer; None if this is not about rows."""
        way = self.ways().get(asked) if isinstance(asked, str) else None
        return None if way is None else await way()

    def ways(self) -> dict[str, Callable[[], Awaitable[Answer]]]:
        return {"list": self._list, "show": self._show, "trace": self._trace}

    async def _list(self) -> Answer:
        views, page = self.views, self._page()
        if page is None:
            before = self.request.get("before")
            return refusal("bad-request", f'"{before}" is no {self.kind}; `list` shows them')
        match self.kind:
            case "turn":
                turns = await self._turns(page)
                return _listed("turns", "turn", [t.turn_id for t in turns], turns, page)
            case "session":
                sessions = await self._sessions(page)
                ids: list[int] = [session.session_id for session in sessions]
                listed = _listed("sessions", "session", ids, sessions, page)
                # What was searched for comes by name, and has no next page: more letters help.
                return {**listed, "next": None} if self.request.get("chat") else listed
            case "message":
                entries = await views.entries(page)
                return _listed("messages", "message", [e.entry_id for e in entries], entries, page)
            case "delivery":
                owed = await views.deliveries(page)
                return _listed("deliveries", "delivery", [d.delivery_id for d in owed], owed, page)
            case "worker":
                boots = await views.workers(page)
                return _listed("workers", "worker", [w.worker_id for w in boots], boots, page)
            case "line":
                lines = await views.journal(page)
                return _listed("lines", "line", [line.seq for line in lines], lines, page)
            case other:
                return refusal("bad-request", f"there is no list of {other!r}")

    async def _turns(self, page: Page) -> tuple[TurnView, ...]:
        """Of all sessions, or of one."""
        session = number_in("session", str(self.request.get("session") or ""))
        if session is None:
            return await self.views.turns(page)
        return await self.views.turns_before(
            SessionId(session), before=page.before, limit=page.limit
        )

    async def _sessions(self, page: Page) -> tuple[SessionView, ...]:
        """The newest, or those whose chat begins with some letters."""
        chat = self.request.get("chat")
        if isinstance(chat, str) and chat:
            return await self.views.sessions_named(chat, page.limit)
        return await self.views.sessions(page)

    def _page(self) -> Page | None:
        """Which rows are asked for; None if they begin before something that is no id."""
        limit, before = self.request.get("limit"), self.request.get("before")
        number: int | None = NEWEST
        if isinstance(before, str) and before:
            number = number_in(self.kind, before)
        if number is None:
            return None
        wanted = limit if isinstance(limit, int) else LIMIT
        is_open = self.request.get("open") is True
        return Page(limit=max(1, min(wanted, LIMIT_MAX)), before=number, is_open=is_open)

    async def _show(self) -> Answer:
        number = number_in(self.kind, self.what)
        views = self.views
        match self.kind:
            case _ if number is None:
                return self.not_found()
            case "turn":
                return await self.turn(TurnId(number)) or self.not_found()
            case "session":
                session = await views.session(SessionId(number))
                if session is None:
                    return self.not_found()
                turns = await views.turns_of(session.session_id, TURNS_OF_SESSION)
                newest = [asdict(turn) for turn in turns]
                return {"ok": True, "session": asdict(session), "turns": newest}
            case "message":
                entry = await views.entry(EntryId(number))
                found = None if entry is None else {"ok": True, "message": asdict(entry)}
                return found or self.not_found()
            case "delivery":
                return await self.delivery(DeliveryId(number)) or self.not_found()
            case other:
                return refusal("bad-request", f"there is no {other!r} to show")

    async def turn(self, turn_id: TurnId) -> Answer | None:
        explained = await self.views.explain(turn_id)
        if explained is None:
            return None
        return {
            "ok": True,
            "turn": asdict(explained.turn),
            "messages": [asdict(entry) for entry in explained.entries],
            "calls": [asdict(call) for call in await self.views.calls_of(turn_id)],
            "deliveries": [asdict(delivery) for delivery in explained.deliveries],
        }

    async def delivery(self, delivery_id: DeliveryId) -> Answer | None:
        delivery = await self.views.delivery(delivery_id)
        return None if delivery is None else {"ok": True, "delivery": asdict(delivery)}

    async def _trace(self) -> Answer:
        """By a platform's own id of a message, or by ours."""
        views, number = self.views, number_in("message", self.what)
        entry = await views.entry_by_external_id(self.what)
        if entry is None and number is not None:
            entry = await views.entry(EntryId(number))
        trace = None if entry is None else await views.trace(entry.entry_id)
        if trace is None:
            words = (
                f'no message "{self.what}" has arrived; a platform\'s own id is meant '
                "(of Telegram: chat/message), or m1"
            )
            return refusal("not-found", words)
        return {"ok": True, **asdict(trace)}

    def not_found(self) -> Answer:
        example = _named(self.kind, 1)
        words = f'there is no {self.kind} "{self.what}"; `list` shows them, as {example}'
        return refusal("not-found", words)


def _named(kind: str, number: int) -> str:
    """Boots and journal lines are known by their bare numbers."""
    return shown(kind, number) if kind in PREFIXES else str(number)


def number_in(kind: str, text: str) -> int | None:
    if kind not in PREFIXES:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    named = parse_shown(text)
    return named[1] if named is not None and named[0] == kind else None


def _listed(name: str, kind: str, ids: list[int], views: tuple[object, ...], page: Page) -> Answer:
    """The rows, and before which one the next page begins; None if this was the last."""
    is_full = len(ids) == page.limit
    following = _named(kind, ids[-1]) if is_full else None
    return {"ok": True, name: [asdict(view) for view in views], "next": following}  # type: ignore[call-overload]
