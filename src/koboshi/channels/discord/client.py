"""Calls of the REST API, paced by its buckets."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TypeVar

import httpx2
import msgspec
from anyio import sleep

from koboshi import __version__
from koboshi.channels.common.calls import NoAnswer, answer_to
from koboshi.channels.discord.rate_buckets import RateBuckets
from koboshi.channels.discord.types import RefusedCall
from koboshi.domain.errors import FileNotHad
from koboshi.domain.resource_exhaustion import shortage_behind
from koboshi.http_pool import HttpPool

CONNECT_SECONDS = 10
SEND_SECONDS = 30.0
UPLOAD_SECONDS = 300.0
PATIENCE_SECONDS = 60.0
"""How long a call waits for its bucket before it counts as refused."""
AGENT = f"DiscordBot (https://koboshi.invalid, {__version__})"
"""Without such a name calls may be turned away (`reference.mdx`, User Agent)."""
TOO_MANY = 429
NOT_FOUND = 404
GOOD = range(200, 300)
BY_STATUS = frozenset({401, 413, TOO_MANY})
"""Refusals that hold whatever stands before the platform: the token, a size, a pause."""

_refused = msgspec.json.Decoder(RefusedCall)
Shape = TypeVar("Shape")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    status: int
    body: bytes = b""
    sent_ms: int = 0
    """The platform's own clock, to the second; 0 if it did not tell."""

    @property
    def is_good(self) -> bool:
        return self.status in GOOD

    @property
    def is_foreign(self) -> bool:
        """Whether it is of what stands before the platform, which refuses in JSON with a message.
        It says nothing about what was asked for."""
        refuses = self.status in range(400, 500) and self.status not in BY_STATUS
        told = self._told()
        return refuses and (told is None or not told.message)

    @property
    def refusal(self) -> RefusedCall:
        return self._told() or RefusedCall(message=f"the platform answered {self.status}")

    def read(self, shape: type[Shape]) -> Shape:
        """What it says. Raises NoAnswer if that cannot be read."""
        try:
            return msgspec.json.decode(self.body, type=shape)
        except (msgspec.DecodeError, RecursionError) as error:
            raise NoAnswer(f"the answer cannot be read: {error}") from None

    def _told(self) -> RefusedCall | None:
        try:
            return _refused.decode(self.body)
        except (msgspec.DecodeError, RecursionError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordApi:
    """One bot. A call has a kind and a place (a channel or a server) for its bucket."""

    lanes: HttpPool
    base: str
    buckets: RateBuckets
    token: str = field(repr=False)

    async def call(
        self,
        verb: str,
        path: str,
        content: object = None,
        *,
        kind: str,
        place: str = "",
        seconds: float = SEND_SECONDS,
    ) -> ApiAnswer:
        """What the platform answers. Raises NotReached, or NoAnswer if that cannot be known."""
        headers = self._headers()
        body = b""
        if content is not None:
            headers["Content-Type"] = "application/json"
            body = msgspec.json.encode(content)
        request = httpx2.Request(
            verb,
            f"{self.base}{path}",
            headers=headers,
            content=body,
            extensions={"timeout": _timeout(seconds).as_dict()},
        )
        return await self._ask(request, kind, place)

    async def upload(
        self, path: str, content: object, name: str, held: bytes, *, kind: str, place: str
    ) -> ApiAnswer:
        """A message that carries a file (`reference.mdx`, Uploading Files)."""
        request = httpx2.Request(
            "POST",
            f"{self.base}{path}",
            headers=self._headers(),
            data={"payload_json": msgspec.json.encode(content).decode()},
            files={"files[0]": (name, held)},
            extensions={"timeout": _timeout(UPLOAD_SECONDS).as_dict()},
        )
        return await self._ask(request, kind, place)

    @asynccontextmanager
    async def download(self, address: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """A file of the platform, piece by piece, without our token. Raises NoAnswer, and
        FileNotHad if it is gone."""
        try:
            async with self.lanes.lane() as http, http.stream("GET", address) as response:
                if response.status_code in (403, 404, 410):
                    raise FileNotHad("the platform does not have it any more")
                if response.status_code != httpx2.codes.OK:
                    raise NoAnswer(f"the file was answered with {response.status_code}")
                yield response.aiter_bytes()
        except httpx2.HTTPError as error:
            raise NoAnswer(type(error).__name__) from shortage_behind(error)

    async def _ask(self, request: httpx2.Request, kind: str, place: str) -> ApiAnswer:
        waited = 0.0
        while (wait := self.buckets.take(kind, place)) > 0:
            if waited + wait > PATIENCE_SECONDS:
                return _held_back(wait)
            await sleep(wait)
            waited += wait
        response = await answer_to(self.lanes, lambda http: http.send(request))
        self.buckets.note(kind, place, response.headers)
        answer = ApiAnswer(
            status=response.status_code,
            body=response.content,
            sent_ms=_date_in(response.headers),
        )
        if answer.status == TOO_MANY:
            refusal = answer.refusal
            seconds = refusal.retry_after or _pause_in(response.headers)
            self.buckets.hold(kind, place, seconds, is_global=refusal.is_global)
        elif answer.is_foreign:
            raise NoAnswer(f"the platform answered {answer.status}, and not in its own words")
        return answer

    def _headers(self) -> dict[str, str]:
        return {
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            "Authorization": f"Bot {self.token}",
            "Connection": "keep-alive",
            "User-Agent": AGENT,
        }


def _held_back(wait: float) -> ApiAnswer:
    """As the platform would answer, without asking it in vain."""
    told = {"message": "the platform asks us to slow down", "retry_after": wait}
    return ApiAnswer(status=TOO_MANY, body=msgspec.json.encode(told))


def _timeout(seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(seconds, connect=CONNECT_SECONDS)


def _pause_in(headers: Mapping[str, str]) -> float:
    """How long to wait, where only what stands before the platform says it."""
    asked = headers.get("retry-after", "")
    return float(asked) if asked.isascii() and asked.isdecimal() else 1.0


def _date_in(headers: Mapping[str, str]) -> int:
    try:
        return int(parsedate_to_datetime(headers.get("date", "")).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
