"""The routes behind the page. What is asked of the owner of the home is asked here by the same
requests as from the command line, so nothing can be seen or done in two ways."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import structlog
from anyio import move_on_after
from starlette.background import BackgroundTask
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Path

from koboshi.control.page_replies import CommandHint, PageOffer, SettingList, SettingRow, ToolRow
from koboshi.control.replies import Done, Refusal, refusal
from koboshi.control.request_wire import readable
from koboshi.control.requests import AnswerApproval, ControlRequest
from koboshi.dashboard.files import page_routes
from koboshi.dashboard.operation import Make, PageCall
from koboshi.dashboard.operations import KILL_PATH, OPERATIONS, PAGE_PATH, SETTINGS_PATH
from koboshi.dashboard.people_operations import OWNERS_ONLY
from koboshi.domain.boot import ENDED_WORDS
from koboshi.domain.ids import ChannelName
from koboshi.domain.recovery import RULES

Ask: TypeAlias = Callable[[ControlRequest], Awaitable[Done]]
Endpoint: TypeAlias = Callable[[HttpRequest], Awaitable[Response]]

ANSWER_SECONDS = 5.0

NEEDS_PERSON = "an approval is answered by a person: in their chat, or on the page in a browser"
NEEDS_OWNER = (
    "an owner decides who may use the gateway: on the page in a browser, or in a terminal with "
    "`koboshi pairing` and `koboshi people`"
)
_STATUS = {
    "approval-needs-person": 403,
    "owner-needed": 403,
    "not-found": 404,
    "refused": 409,
    "bad-request": 400,
    "too-slow": 503,
    "bug": 500,
}
"""The protocol's word for why there is no answer."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    channel: ChannelName
    version: str
    model: str
    ask: Ask
    commands: tuple[tuple[str, str], ...] = ()
    """The commands of the chat, each with a line about it."""
    file_bytes_max: int = 0
    settings: Callable[[], Sequence[tuple[str, str, str]]] = tuple
    """Every key of the configuration, its value and where it was set."""
    tools: Callable[[], Sequence[tuple[str, str, str]]] = tuple
    """Each tool that the agent has now, where it comes from, and what it does."""
    kill: Callable[[], None] | None = None
    """Ends this process at once, as `kill -9` would; None where nothing would start it again."""

    def routes(self) -> list[BaseRoute]:
        routes = page_routes()
        for each in OPERATIONS:
            path = each.path.replace("{what}", "{what:path}") if each.takes_slashes else each.path
            if each.make is not None:
                methods = ["POST"] if each.how == "do" else None
                routes.append(Path(path, _told(self._asking(each.make)), methods=methods))
        routes.append(Path(PAGE_PATH, _told(self._page)))
        routes.append(Path(SETTINGS_PATH, _told(self._settings)))
        if self.kill is not None:
            routes.append(Path(KILL_PATH, self._kill, methods=["POST"]))
        return routes

    def _asking(self, make: Make) -> Callable[[HttpRequest], Awaitable[Done]]:
        async def ask(request: HttpRequest) -> Done:
            what = str(readable(request.path_params.get("what", "")))
            call = PageCall(channel=self.channel, what=what, query=request.query_params)
            asked = make(call)
            # A token is a program's. Programs do not allow what programs want to do, and give no
            # person access. A browser is let in by the operator's own link.
            is_program = "authorization" in request.headers
            if is_program and isinstance(asked, AnswerApproval):
                return refusal("approval-needs-person", NEEDS_PERSON)
            if is_program and isinstance(asked, OWNERS_ONLY):
                return refusal("owner-needed", NEEDS_OWNER)
            return await self.ask(asked)

        return ask

    async def _page(self, _request: HttpRequest) -> PageOffer:
        return PageOffer(
            channel=self.channel,
            version=self.version,
            model=self.model,
            can_kill=self.kill is not None,
            rules={rule.label: rule.because for rule in RULES},
            ends={str(how): words for how, words in ENDED_WORDS.items()},
            commands=tuple(CommandHint(name=name, words=words) for name, words in self.commands),
            file_bytes_max=self.file_bytes_max,
        )

    async def _settings(self, _request: HttpRequest) -> SettingList:
        rows = (SettingRow(key=key, value=value, source=by) for key, value, by in self.settings())
        tools = (ToolRow(name=name, source=of, words=words) for name, of, words in self.tools())
        return SettingList(settings=tuple(rows), tools=tuple(tools))

    async def _kill(self, _request: HttpRequest) -> Response:
        """Answered before it is done: afterwards there is no process to answer."""
        assert self.kill is not None
        log.warning("kill_asked", by="page")
        return Response(
            msgspec.json.encode(Done()),
            202,
            media_type="application/json",
            background=BackgroundTask(_call, self.kill),
        )


async def _call(kill: Callable[[], None]) -> None:
    """On the event loop, so that not even a thread lives on."""
    kill()


def _told(ask: Callable[[HttpRequest], Awaitable[Done]]) -> Endpoint:
    """The endpoint that gives the answer, within the time, as JSON."""

    async def endpoint(request: HttpRequest) -> Response:
        answer: Done | None = None
        try:
            with move_on_after(ANSWER_SECONDS):
                answer = await ask(request)
        except Exception:  # a look at the page must not end the channel
            log.error("dashboard_failed", path=request.url.path, exc_info=True)
            answer = refusal("bug", "something went wrong here; the gateway's log says what")
        if answer is None:
            answer = refusal("too-slow", f"no answer within {ANSWER_SECONDS:g} s; ask again")
        return Response(
            msgspec.json.encode(answer), _status_of(answer), media_type="application/json"
        )

    return endpoint


def _status_of(answer: Done) -> int:
    return _STATUS.get(answer.error.type, 400) if isinstance(answer, Refusal) else 200
