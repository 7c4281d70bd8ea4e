"""Discord on the loopback: REST and gateway, in the test's own loop or in a thread."""

import asyncio
import base64
import math
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import msgspec

from tests.fakes.discord import errors
from tests.fakes.discord.buckets import Buckets, Ruling
from tests.fakes.discord.control import DiscordControl
from tests.fakes.discord.errors import ApiRefusal
from tests.fakes.discord.gateway import FakeGateway
from tests.fakes.discord.rest import Answer, ApiCall, matched, read_content, read_query
from tests.fakes.discord.world import BOT_ID, DiscordWorld
from tests.fakes.listening import Listener, served_in_thread, settle
from tests.fakes.telegram.faults import Act, Fault, Faults, Moment
from tests.fakes.telegram.history import History, Request
from tests.fakes.telegram.params import Upload, params_of
from tests.fakes.telegram.wire import DROPPED, Answered, Connection, HttpRequest, Reply
from tests.harness.polling import until

API = "/api/v10"
OPEN_TO_ALL = frozenset({"getGateway", "answerInteraction"})


def token_of(bot_id: int) -> str:
    """A token begins with the number of its bot."""
    return f"{base64.b64encode(str(bot_id).encode()).decode().rstrip('=')}.loop.back-only-token"


TOKEN = token_of(BOT_ID)


class FakeDiscord:
    """One bot's platform. The world outlives the server: it may be stopped and served again."""

    def __init__(self, world: DiscordWorld | None = None) -> None:
        self.world = world or DiscordWorld()
        self.token = token_of(self.world.bot.user_id)
        self.gateway = FakeGateway(self.world, self.token)
        self.faults = Faults()
        self.history = History()
        self.buckets = Buckets(self.world.clock)
        self._control = DiscordControl(self)
        self._listener = Listener(self._answer)

    @property
    def url(self) -> str:
        return self._listener.url

    @property
    def api_url(self) -> str:
        return f"{self.url}{API}"

    async def start(self) -> None:
        """Listen; on the ports it had before, if it was stopped."""
        await self._listener.open()
        self.world.base = self.url
        await self.gateway.start()

    async def stop(self) -> None:
        await self._listener.close()
        await self.gateway.stop()
        await settle()

    def _answer(self, http: HttpRequest, connection: Connection) -> Answered:
        if http.path.startswith("/control/"):
            return self._control.answer(http.path.removeprefix("/control/"), http.body)
        if http.path.startswith("/attachments/"):
            return self._download(http)
        try:
            path = http.path.removeprefix(API)
            if path == http.path:
                raise errors.NOT_FOUND
            name, answer, numbers = matched(http.verb, path)
            agent = http.headers.get("user-agent", "")
            if name not in OPEN_TO_ALL and not agent.startswith("DiscordBot ("):
                raise errors.NO_AGENT
            shown = http.headers.get("authorization", "")
            if name not in OPEN_TO_ALL and shown != f"Bot {self.token}":
                raise errors.UNAUTHORIZED
            call = self._read(http)
        except ApiRefusal as refusal:
            return _refused(refusal)
        return self._serve(name, answer, numbers, call)

    def _read(self, http: HttpRequest) -> ApiCall:
        uploads: dict[str, Upload] = {}
        if http.kind.startswith("multipart/form-data"):
            params = params_of("", http.kind, http.body)
            uploads = dict(params.uploads)
            content = read_content("application/json", str(params.values["payload_json"]).encode())
        else:
            content = read_content(http.kind, http.body)
        return ApiCall(
            world=self.world,
            query=read_query(http.query),
            content=content,
            uploads=uploads,
            application_marks=self.gateway.application_marks,
            gateway_url=self.gateway.url,
        )

    def _serve(self, name: str, answer: Answer, numbers: dict[str, str], call: ApiCall) -> Answered:
        major = numbers.get("channel") or numbers.get("guild") or ""
        chat = int(major) if major.isdecimal() else None
        asked = {**{key: each[0] for key, each in call.query.items()}, **call.content}
        request = Request(method=name, params=asked, at=self.world.clock(), chat=chat)
        self.history.requests.append(request)
        ruling = self.buckets.ask(name, major)
        if ruling.wait_s:
            return _told_to_wait(ruling, request)
        fault = self.faults.next_for(name.lower(), chat) if self.faults.all else None
        if fault is None:
            return self._perform(answer, numbers, call, request, ruling)
        return self._serve_slowly(answer, numbers, call, request, fault)

    async def _serve_slowly(
        self,
        answer: Answer,
        numbers: dict[str, str],
        call: ApiCall,
        request: Request,
        fault: Fault,
    ) -> Reply:
        reply = await _hit(fault, request) if fault.moment is Moment.BEFORE else None
        if reply is None:
            reply = self._perform(answer, numbers, call, request, Ruling())
            if fault.moment is Moment.AFTER:
                reply = await _hit(fault, request) or reply
        request.status = reply.status
        return reply

    def _perform(
        self,
        answer: Answer,
        numbers: dict[str, str],
        call: ApiCall,
        request: Request,
        ruling: Ruling,
    ) -> Reply:
        try:
            result = answer(call, **numbers)
        except ApiRefusal as refusal:
            request.description = refusal.message
            request.status = refusal.status
            return _refused(refusal, ruling.headers)
        request.is_recorded = True
        request.result = result
        request.status = 204 if result is None else 200
        if result is None:
            return Reply(204, b"", "text/html", headers=ruling.headers)
        now = self.world.clock()
        return Reply(200, msgspec.json.encode(result), headers=ruling.headers, at=now)

    def _download(self, http: HttpRequest) -> Reply:
        found = re.fullmatch(r"/attachments/\d+/(\d+)/.+", http.path)
        held = self.world.files.get(int(found[1])) if found else None
        until = read_query(http.query).get("ex", ["0"])[0]
        if held is None or int(until, 16) < self.world.clock():
            return Reply(404, b"This content is no longer available.", "text/plain")
        return Reply(200, held.content, held.kind)


async def _hit(fault: Fault, request: Request) -> Reply | None:
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
            return Reply(200, b'{"id":')
        case Act.TOO_MANY:
            headers = (("X-RateLimit-Scope", "user"),)
            return _told_to_wait(Ruling(headers=headers, wait_s=fault.seconds), request)
        case Act.STATUS:
            pause = (("Retry-After", str(int(fault.seconds))),) if fault.seconds else ()
            return Reply(fault.status, b"<html>nginx</html>", "text/html", headers=pause)


def _told_to_wait(ruling: Ruling, request: Request) -> Reply:
    request.status = 429
    told = {
        "message": "You are being rate limited.",
        "retry_after": ruling.wait_s,
        "global": ruling.is_global,
    }
    return Reply(429, msgspec.json.encode(told), headers=ruling.headers)


def _refused(refusal: ApiRefusal, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    told = {"message": refusal.message, "code": refusal.code}
    return Reply(refusal.status, msgspec.json.encode(told), headers=headers)


@asynccontextmanager
async def serving_discord(world: DiscordWorld | None = None) -> AsyncIterator[FakeDiscord]:
    """The platform in the loop of the caller."""
    fake = FakeDiscord(world)
    await fake.start()
    try:
        yield fake
    finally:
        await fake.stop()


@contextmanager
def discord_in_thread(world: DiscordWorld | None = None) -> Iterator[FakeDiscord]:
    """The platform in a thread of its own: for tests that block their loop, or have none."""
    fake = FakeDiscord(world)
    with served_in_thread(fake.start, fake.stop):
        yield fake
