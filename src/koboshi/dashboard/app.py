"""The routes behind the page. What is asked of the owner of the home is asked here in the same
words as from the command line, so nothing can be seen or done in two ways."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import msgspec
import structlog
from anyio import move_on_after
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Path

from koboshi.dashboard.files import page_routes
from koboshi.domain.ids import ChannelName, TurnId, parse_shown, shown
from koboshi.domain.reasons import or_by_hand, why_closed, why_message
from koboshi.domain.recovery import RULES
from koboshi.domain.turn import CLOSED
from koboshi.ports.views import OwnerViews, TurnView

Json: TypeAlias = Mapping[str, object]
Ask: TypeAlias = Callable[[Json], Awaitable[Json]]
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

BASE = "/api/v1"
ANSWER_SECONDS = 5.0
LIMIT = 50
LIMIT_MAX = 200
LOG_CHARS = 20_000
LOG_CHARS_MAX = 200_000
STEPS_MAX = 300
QUESTIONS_MAX = 200
CHATS_MAX = 50

_STATUS = {"not-found": 404, "refused": 409, "bad-request": 400, "too-slow": 503, "bug": 500}
"""The protocol's word for why there is no answer."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    channel: ChannelName
    version: str
    model: str
    views: OwnerViews
    ask: Ask
    kill: Callable[[], None] | None = None
    """Ends this process at once, as `kill -9` would; None where nobody would start it again."""

    def routes(self) -> list[BaseRoute]:
        return [*page_routes(), *self._reading(), *self._doing()]

    def _reading(self) -> list[BaseRoute]:
        lists = {"sessions": "session", "turns": "turn", "inbox": "message", "outbox": "delivery"}
        numbered = {"workers": "worker", "journal": "line"}
        routes: list[BaseRoute] = [
            Path(f"{BASE}/{name}", _told(self._listing(kind)))
            for name, kind in (lists | numbered).items()
            if kind != "message"
        ]
        routes += [
            Path(f"{BASE}/{name}/{{what}}", _told(self._showing(kind)))
            for name, kind in lists.items()
            if kind != "turn"
        ]
        return [
            *routes,
            Path(f"{BASE}/inbox", _told(self._inbox)),
            Path(f"{BASE}/turns/{{what}}", _told(self._turn)),
            Path(f"{BASE}/explain/{{what:path}}", _told(self._explain)),
            Path(f"{BASE}/troubles", _told(self._asking("troubles"))),
            Path(f"{BASE}/processes", _told(self._asking("processes"))),
            Path(f"{BASE}/processes/{{what}}", _told(self._asking("explain"))),
            Path(f"{BASE}/processes/{{what}}/log", _told(self._log)),
            Path(f"{BASE}/questions", _told(self._questions)),
            Path(f"{BASE}/chats", _told(self._chats)),
            Path(f"{BASE}/page", _told(self._page)),
        ]

    def _doing(self) -> list[BaseRoute]:
        verbs = {
            "turns/{what}/resume": ("turn-resume", "turn"),
            "turns/{what}/drop": ("turn-drop", "turn"),
            "inbox/{what}/retry": ("inbox-retry", "message"),
            "inbox/{what}/drop": ("inbox-drop", "message"),
            "outbox/{what}/retry": ("outbox-retry", "delivery"),
            "outbox/{what}/drop": ("outbox-drop", "delivery"),
            "processes/{what}/kill": ("process-kill", ""),
        }
        routes: list[BaseRoute] = [
            Path(f"{BASE}/{path}", _told(self._asking(verb, kind)), methods=["POST"])
            for path, (verb, kind) in verbs.items()
        ]
        if self.kill is not None:
            routes.append(Path(f"{BASE}/try/kill", self._kill, methods=["POST"]))
        return routes

    def _listing(self, kind: str) -> Callable[[Request], Awaitable[Json]]:
        async def ask(request: Request) -> Json:
            query = request.query_params
            return await self.ask(
                {
                    "ask": "list",
                    "kind": kind,
                    "limit": _number(query.get("limit"), LIMIT, LIMIT_MAX),
                    "before": query.get("before"),
                    "open": query.get("open") in ("1", "true"),
                    "session": query.get("session"),
                    "chat": query.get("chat"),
                }
            )

        return ask

    def _showing(self, kind: str) -> Callable[[Request], Awaitable[Json]]:
        return self._asking("show", kind)

    def _asking(self, verb: str, kind: str = "") -> Callable[[Request], Awaitable[Json]]:
        async def ask(request: Request) -> Json:
            what = request.path_params.get("what", "")
            return await self.ask({"ask": verb, "kind": kind, "what": what})

        return ask

    async def _inbox(self, request: Request) -> Json:
        """What arrived, each with what became of it in plain words, and with its turn."""
        listed = await self._listing("message")(request)
        messages = listed.get("messages")
        if not isinstance(messages, list):
            return listed
        turn_ids = sorted({each["turn_id"] for each in messages if each["turn_id"] is not None})
        turns = {turn.turn_id: turn for turn in await self.views.turns_named(turn_ids)}
        return {
            **listed,
            "messages": [{**each, **_fate(each, turns.get(each["turn_id"]))} for each in messages],
        }

    async def _turn(self, request: Request) -> Json:
        """All that is known of a turn: why it is where it is, and what was said and done."""
        what = request.path_params["what"]
        named = parse_shown(what)
        if named is None or named[0] != "turn":
            return _refusal("not-found", f'there is no turn "{what}"')
        return await self._explain(request)

    async def _explain(self, request: Request) -> Json:
        """What `koboshi explain` is told; of a turn also what was said and done in it."""
        told = await self.ask({"ask": "explain", "what": request.path_params["what"]})
        match told:
            case {"ok": True, "kind": "turn", "turn": {"turn_id": int(number)}}:
                steps = await self.views.steps_of(TurnId(number), STEPS_MAX)
                calls = await self.views.calls_of(TurnId(number))
                return {
                    **told,
                    "steps": [asdict(step) for step in steps],
                    "calls": [asdict(call) for call in calls],
                }
            case _:
                return told

    async def _log(self, request: Request) -> Json:
        chars = _number(request.query_params.get("chars"), LOG_CHARS, LOG_CHARS_MAX)
        what = request.path_params["what"]
        return await self.ask({"ask": "process-log", "what": what, "chars": chars})

    async def _questions(self, _request: Request) -> Json:
        found = await self.views.questions(QUESTIONS_MAX)
        return {"ok": True, "questions": [asdict(question) for question in found]}

    async def _chats(self, _request: Request) -> Json:
        found = await self.views.chats(self.channel, CHATS_MAX)
        return {"ok": True, "chats": [asdict(chat) for chat in found]}

    async def _page(self, _request: Request) -> Json:
        return {
            "ok": True,
            "channel": self.channel,
            "version": self.version,
            "model": self.model,
            "can_kill": self.kill is not None,
            "rules": {rule.label: rule.because for rule in RULES},
        }

    async def _kill(self, _request: Request) -> Response:
        """Said before it is done: afterwards there is nobody to say it."""
        assert self.kill is not None
        log.warning("kill_asked", by="page")
        return Response(
            msgspec.json.encode({"ok": True}),
            202,
            media_type="application/json",
            background=BackgroundTask(_call, self.kill),
        )


async def _call(kill: Callable[[], None]) -> None:
    """On the event loop, so that not even a thread lives on."""
    kill()


def _fate(entry: Mapping[str, Any], turn: TurnView | None) -> Json:
    """What became of a message. While its turn is not closed, that turn's page says more."""
    if turn is None:
        reason = why_message(
            shown("message", entry["entry_id"]),
            entry["state"],
            entry["kind"],
            entry["reason"],
            sender=entry["sender"],
            channel=entry["source"],
        )
        return {"turn": None, "fate": None if entry["state"] == "waiting" else asdict(reason)}
    closed = why_closed(turn.state, turn.event, turn.reason, turn.crash_streak)
    if entry["kind"] == "message":
        closed = or_by_hand(closed, turn.state, shown("message", entry["entry_id"]))
    return {"turn": asdict(turn), "fate": asdict(closed) if turn.state in CLOSED else None}


def _told(ask: Callable[[Request], Awaitable[Json]]) -> Endpoint:
    """The endpoint that gives the answer, within the time, as JSON."""

    async def endpoint(request: Request) -> Response:
        answer: Json | None = None
        try:
            with move_on_after(ANSWER_SECONDS):
                answer = await ask(request)
        except Exception:  # a look at the page must not end the channel
            log.error("dashboard_failed", path=request.url.path, exc_info=True)
            answer = _refusal("bug", "something went wrong here; the gateway's log says what")
        if answer is None:
            answer = _refusal("too-slow", f"no answer within {ANSWER_SECONDS:g} s; ask again")
        return Response(
            msgspec.json.encode(answer), _status_of(answer), media_type="application/json"
        )

    return endpoint


def _refusal(kind: str, message: str) -> Json:
    return {"ok": False, "error": {"type": kind, "message": message}}


def _status_of(answer: Json) -> int:
    match answer:
        case {"ok": True}:
            return 200
        case {"error": {"type": str(kind)}}:
            return _STATUS.get(kind, 400)
        case _:
            return 500


def _number(text: str | None, otherwise: int, most: int) -> int:
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 10
    return max(1, min(int(text or 0), most)) if is_number else otherwise
