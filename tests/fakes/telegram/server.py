"""The Bot API over HTTP, on the loopback, in the test's own loop, in a thread or as a program."""

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import msgspec

from tests.fakes.listening import Listener, served_in_thread
from tests.fakes.telegram.control import Control
from tests.fakes.telegram.errors import (
    OTHER_POLLER,
    WEBHOOK_ACTIVE,
    WEBHOOK_SET,
    Refusal,
    too_many_requests,
)
from tests.fakes.telegram.faults import Act, Fault, Faults, Moment
from tests.fakes.telegram.history import History, Request
from tests.fakes.telegram.limits import Limits
from tests.fakes.telegram.methods import METHODS
from tests.fakes.telegram.params import Params, params_of
from tests.fakes.telegram.updates import Waiting
from tests.fakes.telegram.webhook import Webhook, allow
from tests.fakes.telegram.wire import DROPPED, Answered, Connection, HttpRequest, Reply
from tests.fakes.telegram.world import BOT_ID, World
from tests.harness.polling import until

TOKEN = f"{BOT_ID}:AAloopback-only-token-of-the-fake-bot"
POLL_S_MAX = 50
UPDATES_MAX = 100
UNAUTHORIZED = Refusal(401, "Unauthorized")
NOT_FOUND = Refusal(404, "Not Found")
NOBODY_LISTENS = "the client has gone"
BAD_GATEWAY = "<html><head><title>{status}</title></head><body>nginx</body></html>"

Performance = Callable[[], Awaitable[Reply]]


class FakeTelegram:
    """One bot's platform. The world outlives the server: it may be stopped and served again."""

    def __init__(self, world: World | None = None, *, token: str = TOKEN) -> None:
        self.world = world or World()
        self.token = token
        self.faults = Faults()
        self.history = History()
        self.limits = Limits(clock=lambda: self.world.clock())
        self.webhook = Webhook(self.world)
        self._control = Control(self.world, self.faults, self.history, self.limits)
        self._poller: asyncio.Future[str] | None = None
        self._listener = Listener(self._answer)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0

    @property
    def port(self) -> int:
        return self._listener.port

    @property
    def url(self) -> str:
        return self._listener.url

    @property
    def bot_url(self) -> str:
        return f"{self.url}/bot{self.token}"

    async def start(self, port: int = 0) -> None:
        """Listen; on the port it had before, if it was stopped."""
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        await self._listener.open(port)
        self.world.on_update = self._announce

    async def stop(self) -> None:
        self.world.on_update = lambda: None
        self.webhook.stop()
        await self._listener.close()

    def drop_connections(self) -> None:
        """Every connection ends without an answer."""
        self._listener.drop_connections()

    def _announce(self) -> None:
        """Something happened, in whatever thread."""
        if threading.get_ident() == self._thread_id:
            self._wake()
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self.webhook.has_news.set()
        self._end_poll("")

    def _end_poll(self, conflict: str) -> None:
        if self._poller is not None:
            _end(self._poller, conflict)

    def _answer(self, http: HttpRequest, connection: Connection) -> Answered:
        path = http.path
        if path.startswith("/control/"):
            return self._control.answer(path.removeprefix("/control/"), http.body)
        if path.startswith("/file/bot"):
            return self._download(path.removeprefix("/file/bot"))
        token, _, method = path.removeprefix("/bot").partition("/")
        if not path.startswith("/bot") or not method:
            return refused(NOT_FOUND)
        if token != self.token:
            return refused(UNAUTHORIZED)
        try:
            params = params_of(http.query, http.kind, http.body)
        except Refusal as refusal:
            return refused(refusal)
        return self._serve(method, params, connection)

    def _serve(self, name: str, params: Params, connection: Connection) -> Answered:
        method = name.lower()
        chat = _chat_id(params)
        uploads = {
            each: {"name": held.name, "size": len(held.content)}
            for each, held in params.uploads.items()
        }
        request = Request(
            method=name, params={**params.values, **uploads}, at=self.world.clock(), chat=chat
        )
        self.history.requests.append(request)
        self.limits.watch(method, chat)
        fault = self.faults.next_for(method, chat) if self.faults.all else None
        if fault is None and method != "getupdates":
            return self._perform(method, params, request)
        if method == "getupdates":
            perform: Performance = partial(self._get_updates, params, request, connection)
        else:
            perform = partial(self._perform_later, method, params, request)
        return self._serve_slowly(method, perform, request, fault)

    async def _serve_slowly(
        self, method: str, perform: Performance, request: Request, fault: Fault | None
    ) -> Reply:
        reply: Reply | None = None
        if fault is not None and fault.moment is Moment.BEFORE:
            reply = await self._hit(fault, method, request)
        if reply is None:
            reply = await perform()
            if fault is not None and fault.moment is Moment.AFTER:
                reply = await self._hit(fault, method, request) or reply
        request.status = reply.status
        return reply

    async def _hit(self, fault: Fault, method: str, request: Request) -> Reply | None:
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
                return Reply(200, b'{"ok":true,"result":{"message_id":')
            case Act.TOO_MANY:
                self.limits.tell_to_wait(method, request.chat, fault.seconds)
                return refused(too_many_requests(max(1, round(fault.seconds))), request)
            case Act.STATUS:
                return _status(fault, request)

    async def _perform_later(self, method: str, params: Params, request: Request) -> Reply:
        return self._perform(method, params, request)

    def _perform(self, method: str, params: Params, request: Request) -> Reply:
        try:
            wait_s = self.limits.refusal(method, request.chat)
            if wait_s is not None:
                raise too_many_requests(wait_s)
            with self.world.lock:
                result = self._result(method, params)
        except Refusal as refusal:
            return refused(refusal, request)
        request.is_recorded = True
        request.result = result
        request.status = 200
        return Reply(200, msgspec.json.encode({"ok": True, "result": result}))

    def _result(self, method: str, params: Params) -> Any:
        match method:
            case "setwebhook":
                was_set = self.webhook.set(params)
                if self.webhook.hook is not None:
                    self._end_poll(WEBHOOK_SET)
                return was_set
            case "deletewebhook":
                return self.webhook.delete(params)
            case "getwebhookinfo":
                return self.webhook.as_json()
            case _ if method in METHODS:
                return METHODS[method](self.world, params)
            case _:
                raise NOT_FOUND

    async def _get_updates(self, params: Params, request: Request, connection: Connection) -> Reply:
        try:
            told = await self._poll(params, connection)
        except Refusal as refusal:
            return refused(refusal, request)
        request.is_recorded = True
        request.status = 200
        request.result = [each.update_id for each in told]
        body = b'{"ok":true,"result":[' + b",".join(each.body for each in told) + b"]}"
        return Reply(200, body)

    async def _poll(self, params: Params, connection: Connection) -> list[Waiting]:
        if self.webhook.hook is not None:
            raise Refusal(409, WEBHOOK_ACTIVE)
        self._end_poll(OTHER_POLLER)
        limit = params.integer("limit", UPDATES_MAX)
        limit = limit if 1 <= limit <= UPDATES_MAX else UPDATES_MAX
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + max(0, min(params.integer("timeout"), POLL_S_MAX))
        with self.world.lock:
            allow(self.world, params)
            told = self.world.updates.take(params.integer("offset"), limit)
        while not told and loop.time() < ends_at:
            poller = self._poller = loop.create_future()
            connection.when_lost = partial(_end, poller, NOBODY_LISTENS)
            # What came between the look and this line is found here, not a whole poll later.
            with self.world.lock:
                told = self.world.updates.take(0, limit)
            if told:
                break
            await asyncio.wait({poller}, timeout=ends_at - loop.time())
            conflict = poller.result() if poller.done() else ""
            if conflict:
                raise Refusal(409, conflict)
            with self.world.lock:
                told = self.world.updates.take(0, limit)
        return told

    def _download(self, rest: str) -> Reply:
        token, _, path = rest.partition("/")
        if token != self.token:
            return refused(UNAUTHORIZED)
        stored = self.world.files.at(path)
        if stored is None:
            return refused(NOT_FOUND)
        return Reply(200, stored.content, stored.kind)


def refused(refusal: Refusal, request: Request | None = None) -> Reply:
    body: dict[str, Any] = {
        "ok": False,
        "error_code": refusal.code,
        "description": refusal.description,
    }
    if refusal.parameters:
        body["parameters"] = refusal.parameters
    if request is not None:
        request.status = refusal.code
        request.description = refusal.description
    return Reply(refusal.code, msgspec.json.encode(body))


def _end(poller: "asyncio.Future[str]", conflict: str) -> None:
    if not poller.done():
        poller.set_result(conflict)


def _status(fault: Fault, request: Request) -> Reply:
    if fault.description:
        return refused(Refusal(fault.status, fault.description), request)
    if fault.status == 500:
        return refused(Refusal(500, "Internal Server Error"), request)
    page = BAD_GATEWAY.format(status=fault.status)
    return Reply(fault.status, page.encode(), "text/html")


def _chat_id(params: Params) -> int | None:
    given = params.values.get("chat_id")
    if isinstance(given, int):
        return given
    try:
        return int(given) if given else None
    except (TypeError, ValueError):
        return None


@asynccontextmanager
async def serving(
    world: World | None = None, *, token: str = TOKEN, port: int = 0
) -> AsyncIterator[FakeTelegram]:
    """The platform in the loop of the caller."""
    fake = FakeTelegram(world, token=token)
    await fake.start(port)
    try:
        yield fake
    finally:
        await fake.stop()


@contextmanager
def serving_in_thread(
    world: World | None = None, *, token: str = TOKEN, port: int = 0
) -> Iterator[FakeTelegram]:
    """The platform in a thread of its own: for tests that block their loop, or have none."""
    fake = FakeTelegram(world, token=token)
    with served_in_thread(partial(fake.start, port), fake.stop):
        yield fake
