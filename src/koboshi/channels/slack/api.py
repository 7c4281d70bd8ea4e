"""A thin client of the Web API: what Slack says, and whether a failed call got there."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

import httpx2
import msgspec

from koboshi.channels.common.calls import NoAnswer, answer_to
from koboshi.channels.slack.outcomes import RATE_LIMITED, UNKNOWN_OUTCOME
from koboshi.channels.slack.types import SlackReply
from koboshi.domain.durations import wait_ms
from koboshi.domain.errors import FileNotHad
from koboshi.domain.resource_exhaustion import shortage_behind
from koboshi.http_pool import HttpPool
from koboshi.ports.clock import Clock

CONNECT_SECONDS = 10.0
CALL_SECONDS = 30.0
UPLOAD_SECONDS = 120.0
TOO_MANY = 429
FILES_HOST = "files.slack.com"

Reply = TypeVar("Reply", bound=SlackReply)


@dataclass(frozen=True, slots=True)
class Answered:
    """What a method answered, how long a pause it asks for, and which scopes the token
    has."""

    body: bytes
    wait_ms: int = 0
    scopes: frozenset[str] = frozenset()

    def read(self, kind: type[Reply]) -> Reply:
        """Raises NoAnswer for what cannot be read, and for an outcome that Slack does not know."""
        try:
            reply = msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise NoAnswer(f"the answer cannot be read: {error}") from None
        if not reply.ok and reply.error in UNKNOWN_OUTCOME:
            raise NoAnswer(f"the platform answered {reply.error}")
        return reply


@dataclass(slots=True, kw_only=True)
class SlackApi:
    """Reads go as a form: these methods do not look at JSON. Writes go as JSON."""

    lanes: HttpPool
    base: str
    token: str = field(repr=False)
    clock: Clock
    ahead_s: float = 0.0
    """How far the platform's clock is ahead of ours, as it last said."""

    @property
    def now_s(self) -> float:
        """What the platform's clock shows."""
        return self.clock.now_ms() / 1000 + self.ahead_s

    async def read(
        self, method: str, arguments: Mapping[str, object], *, seconds: float = CALL_SECONDS
    ) -> Answered:
        """Raises NotReached, NoAnswer."""
        words = {name: _word(value) for name, value in arguments.items()}
        kind = "application/x-www-form-urlencoded"
        return await self._call(method, urlencode(words).encode(), kind, self.token, seconds)

    async def write(
        self, method: str, arguments: Mapping[str, object], *, seconds: float = CALL_SECONDS
    ) -> Answered:
        """Raises NotReached, NoAnswer."""
        body = msgspec.json.encode(arguments)
        kind = "application/json; charset=utf-8"
        return await self._call(method, body, kind, self.token, seconds)

    async def open_socket(self, app_token: str) -> Answered:
        """The address of a socket that can be connected to once."""
        kind = "application/x-www-form-urlencoded"
        return await self._call("apps.connections.open", b"", kind, app_token, CALL_SECONDS)

    async def upload(self, address: str, content: bytes) -> int:
        """Put the bytes of a file where Slack said. Returns the status."""
        timeout = httpx2.Timeout(UPLOAD_SECONDS, connect=CONNECT_SECONDS)
        response = await answer_to(
            self.lanes, lambda http: http.post(address, content=content, timeout=timeout)
        )
        return response.status_code

    @asynccontextmanager
    async def download(self, address: str, *, is_page: bool) -> AsyncIterator[AsyncIterator[bytes]]:
        """The content of a file, piece by piece. The token goes to Slack's own hosts only. Raises
        FileNotHad if the platform will not give it to us, NoAnswer if it may later."""
        if not self._is_of_slack(address):
            raise FileNotHad("it is kept outside of Slack")
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            async with (
                self.lanes.lane() as http,
                http.stream("GET", address, headers=headers) as response,
            ):
                _check_file(response, is_page=is_page)
                yield response.aiter_bytes()
        except httpx2.HTTPError as error:
            raise NoAnswer(type(error).__name__) from shortage_behind(error)

    def _is_of_slack(self, address: str) -> bool:
        asked, own = urlsplit(address), urlsplit(self.base)
        if (asked.scheme, asked.netloc) == (own.scheme, own.netloc):
            return True
        return asked.scheme == "https" and asked.netloc == FILES_HOST

    async def _call(
        self, method: str, body: bytes, kind: str, token: str, seconds: float
    ) -> Answered:
        request = httpx2.Request(
            "POST",
            f"{self.base}/{method}",
            headers={"Authorization": f"Bearer {token}", "Content-Type": kind},
            content=body,
            extensions={
                "timeout": httpx2.Timeout(seconds, connect=CONNECT_SECONDS).as_dict(),
            },
        )
        response = await answer_to(self.lanes, lambda http: http.send(request))
        at_s = _date_of(response)
        if at_s is not None:
            self.ahead_s = at_s - self.clock.now_ms() / 1000
        return _answered(response)


def _answered(response: httpx2.Response) -> Answered:
    if response.status_code == TOO_MANY:
        asked = response.headers.get("Retry-After", "")
        seconds = float(asked) if asked.isascii() and asked.isdecimal() else 1.0
        body = msgspec.json.encode({"ok": False, "error": RATE_LIMITED})
        return Answered(body, wait_ms=max(wait_ms(seconds), 1))
    if response.status_code != httpx2.codes.OK:
        # The Web API refuses with 200. This is of what stands before it.
        raise NoAnswer(f"the platform answered {response.status_code}")
    scopes = response.headers.get("X-OAuth-Scopes", "")
    named = frozenset(filter(None, (each.strip() for each in scopes.split(","))))
    return Answered(response.content, scopes=named)


def _date_of(response: httpx2.Response) -> float | None:
    """What the clock of the platform shows, in seconds; None if it does not say."""
    try:
        date = parsedate_to_datetime(response.headers.get("Date", ""))
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _check_file(response: httpx2.Response, *, is_page: bool) -> None:
    """Slack answers with a page to log in where the token may not read files."""
    status = response.status_code
    kind = response.headers.get("Content-Type", "")
    if status in (301, 302, 303, 307, 308) or (kind.startswith("text/html") and not is_page):
        raise FileNotHad("Slack does not give it to us; the app needs the scope files:read")
    if status in (403, 404, 410):
        raise FileNotHad("the platform does not have it any more")
    if status != httpx2.codes.OK:
        raise NoAnswer(f"the file was answered with {status}")


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
