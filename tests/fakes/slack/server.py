"""Slack on the loopback: the Web API, Socket Mode, files and the Events API over HTTP."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from tests.fakes.listening import Listener, served_in_thread
from tests.fakes.slack.errors import RateLimited, SlackRefusal
from tests.fakes.slack.limits import Tiers
from tests.fakes.slack.methods import METHODS, READS_JSON, Call
from tests.fakes.slack.request_url import SIGNING_SECRET, RequestUrl
from tests.fakes.slack.sockets import Sockets
from tests.fakes.slack.world import SlackWorld
from tests.fakes.telegram.faults import Act, Fault, Faults, Moment
from tests.fakes.telegram.wire import DROPPED, Answered, Connection, HttpRequest, Reply
from tests.harness.polling import until

JSON = dict[str, Any]
Result = TypeVar("Result")

BOT_TOKEN = "xoxb-1001-2002-loopbackonly"
APP_TOKEN = "xapp-1-A0KOBOSHI-3003-loopbackonly"
LOGIN_PAGE = b"<!DOCTYPE html><title>Slack</title>"


@dataclass(slots=True, kw_only=True, eq=False)
class SlackCall:
    """One call of a method as it came, and what became of it."""

    method: str
    args: JSON
    at: float
    is_done: bool = False
    """The platform has done it, whatever the client was told."""
    status: int = 0
    error: str = ""


@dataclass(slots=True)
class SlackHistory:
    calls: list[SlackCall] = field(default_factory=list)

    def of(self, method: str) -> list[SlackCall]:
        return [each for each in list(self.calls) if each.method == method]


class FakeSlack:
    """One app in one workspace. The world outlives the server."""

    def __init__(self, world: SlackWorld | None = None) -> None:
        self.world = world or SlackWorld()
        self.bot_token, self.app_token = BOT_TOKEN, APP_TOKEN
        self.signing_secret = SIGNING_SECRET
        self.faults = Faults()
        self.history = SlackHistory()
        self.tiers = Tiers(clock=lambda: self.world.clock())
        self.sockets = Sockets(self.world.happenings)
        self.request_url = RequestUrl(self.world.happenings)
        self._listener = Listener(self._answer)
        self._sender: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return self._listener.url

    @property
    def api(self) -> str:
        """What stands before the name of a method."""
        return f"{self.url}/api"

    async def start(self, port: int = 0) -> None:
        await self._listener.open(port)
        self.world.base = self.url
        await self.sockets.start()
        self.world.happenings.transmit = self.sockets.transmit
        self._sender = asyncio.get_running_loop().create_task(self.world.happenings.keep_sending())

    async def stop(self) -> None:
        assert self._sender is not None
        self._sender.cancel()
        self.world.happenings.transmit = None
        self.request_url.stop()
        await self.sockets.stop()
        await self._listener.close()

    async def call_app_at(self, url: str) -> bool:
        """Tell the app of events over HTTP from now on, if it proves that it listens there."""
        is_there = await self.request_url.verify(url)
        if is_there:
            self.world.happenings.transmit = self.request_url.transmit
        return is_there

    def _answer(self, http: HttpRequest, _: Connection) -> Answered:
        if http.path.startswith("/files-pri/"):
            return self._download(http)
        if http.path.startswith("/upload/v1/"):
            return self._upload(http)
        if not http.path.startswith("/api/"):
            return Reply(404, b"", "text/html")
        return self._serve(http)

    def _serve(self, http: HttpRequest) -> Answered:
        name = http.path.removeprefix("/api/")
        args = _args(http, reads_json=name in READS_JSON)
        call = SlackCall(method=name, args=args, at=self.world.clock())
        self.history.calls.append(call)
        place = str(args.get("channel") or args.get("channel_id") or "")
        fault = self.faults.next_for(name.lower(), place) if self.faults.all else None
        if fault is None:
            return self._perform(http, call, place)
        return self._serve_slowly(http, call, place, fault)

    async def _serve_slowly(
        self, http: HttpRequest, call: SlackCall, place: str, fault: Fault
    ) -> Reply:
        if fault.moment is Moment.BEFORE:
            instead = await _hit(fault)
            if instead is not None:
                call.status = instead.status
                return instead
        reply = self._perform(http, call, place)
        if fault.moment is Moment.AFTER:
            reply = await _hit(fault) or reply
        call.status = reply.status
        return reply

    def _perform(self, http: HttpRequest, call: SlackCall, place: str) -> Reply:
        try:
            result = self._result(http, call, place)
        except RateLimited as limited:
            call.status, call.error = 429, "ratelimited"
            return too_many(limited.seconds)
        except SlackRefusal as refusal:
            call.status, call.error = 200, refusal.error
            return self._told({"ok": False, "error": refusal.error, **refusal.more})
        call.is_done, call.status = True, 200
        return self._told({"ok": True, **result})

    def _result(self, http: HttpRequest, call: SlackCall, place: str) -> JSON:
        shown = http.headers.get("authorization", "")
        token = shown.removeprefix("Bearer ") or str(call.args.get("token", ""))
        if not token:
            raise SlackRefusal("not_authed")
        if call.method == "apps.connections.open":
            if token != self.app_token:
                raise SlackRefusal("invalid_auth" if token.startswith("x") else "not_authed")
            return {"url": self.sockets.ticket()}
        if token != self.bot_token:
            raise SlackRefusal("invalid_auth")
        method = METHODS.get(call.method)
        if method is None:
            raise SlackRefusal("unknown_method", req_method=call.method)
        wait_s = self.tiers.wait_s(call.method, place)
        if wait_s is not None:
            raise RateLimited(wait_s)
        return method(Call(self.world, self.tiers, call.args))

    def _told(self, body: JSON) -> Reply:
        scopes = ("X-OAuth-Scopes", ",".join(sorted(self.world.scopes)))
        return Reply(200, json.dumps(body).encode(), headers=(scopes,))

    def _download(self, http: HttpRequest) -> Reply:
        """A file, for those who show the token. Others are sent to a page to log in."""
        file_id = http.path.split("/")[2].partition("-")[2]
        found = self.world.files.get(file_id)
        is_known = http.headers.get("authorization") == f"Bearer {self.bot_token}"
        if not is_known or "files:read" not in self.world.scopes:
            return Reply(302, LOGIN_PAGE, "text/html", headers=(("Location", f"{self.url}/login"),))
        if found is None or found.content is None:
            return Reply(404, b"", "text/html")
        return Reply(200, found.content, found.mimetype)

    def _upload(self, http: HttpRequest) -> Reply:
        found = self.world.files.get(http.path.rpartition("/")[2])
        if found is None or found.content is not None:
            return Reply(404, b"", "text/html")
        content = _uploaded(http)
        if len(content) != found.length:
            return Reply(400, b"length mismatch", "text/plain")
        found.content = content
        return Reply(200, f"OK - {len(content)}".encode(), "text/plain")


def too_many(seconds: int) -> Reply:
    body = json.dumps({"ok": False, "error": "ratelimited"}).encode()
    return Reply(429, body, headers=(("Retry-After", str(seconds)),))


async def _hit(fault: Fault) -> Reply | None:
    """What the client is told instead; None if it only had to wait."""
    match fault.act:
        case Act.WAIT:
            await asyncio.sleep(fault.seconds)
            return None
        case Act.HANG:
            await until(lambda: fault.is_lifted, "the fault is lifted", within_s=math.inf)
            return None
        case Act.DROP:
            return DROPPED
        case Act.GARBLE:
            return Reply(200, b'{"ok":true,"ts":')
        case Act.TOO_MANY:
            return too_many(max(1, round(fault.seconds)))
        case Act.STATUS if fault.description:
            told = {"ok": False, "error": fault.description}
            return Reply(200, json.dumps(told).encode())
        case Act.STATUS:
            return Reply(fault.status, b"<html>unavailable</html>", "text/html")


def _args(http: HttpRequest, *, reads_json: bool) -> JSON:
    """What a method sees of its arguments."""
    args: JSON = dict(parse_qsl(http.query, keep_blank_values=True))
    if http.kind.startswith("application/x-www-form-urlencoded"):
        args |= dict(parse_qsl(http.body.decode(), keep_blank_values=True))
    elif http.kind.startswith("application/json") and reads_json and http.body:
        told = json.loads(http.body)
        args |= told if isinstance(told, dict) else {}
    return args


def _uploaded(http: HttpRequest) -> bytes:
    """The bytes of an upload: the body as it is, or the only part of a form."""
    if not http.kind.startswith("multipart/form-data"):
        return http.body
    border = b"--" + http.kind.partition("boundary=")[2].strip('"').encode()
    part = http.body.split(border)[1]
    return part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")


@asynccontextmanager
async def serving(world: SlackWorld | None = None) -> AsyncIterator[FakeSlack]:
    """The platform in the loop of the caller."""
    fake = FakeSlack(world)
    await fake.start()
    try:
        yield fake
    finally:
        await fake.stop()


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The platform in a thread of its own."""

    fake: FakeSlack
    loop: asyncio.AbstractEventLoop

    def do(self, act: Callable[[], Result]) -> Result:
        """Have its loop do something, and wait for that."""

        async def perform() -> Result:
            return act()

        return self.wait_for(perform())

    def wait_for(self, act: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(act, self.loop).result(10)


@contextmanager
def serving_in_thread() -> Iterator[Elsewhere]:
    """For clients that block: those of others."""
    fake = FakeSlack()
    with served_in_thread(fake.start, fake.stop) as loop:
        yield Elsewhere(fake, loop)
