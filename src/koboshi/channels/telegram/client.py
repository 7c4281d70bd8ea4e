"""Calls of the Bot API."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache

import httpx2
import msgspec

from koboshi import __version__
from koboshi.channels.common.calls import NoAnswer, answer_to
from koboshi.channels.telegram.types import BotAnswer
from koboshi.domain.resource_exhaustion import shortage_behind
from koboshi.http_pool import HttpPool

_answer = msgspec.json.Decoder(BotAnswer)
_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "keep-alive",
    "Content-Type": "application/json",
    "User-Agent": f"koboshi/{__version__}",
}
CONNECT_SECONDS = 10
SEND_SECONDS = 30.0
UPLOAD_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BotApi:
    """One bot. The token is part of every address, so no address is ever shown."""

    lanes: HttpPool
    base: str
    token: str = field(repr=False)

    async def call(
        self, method: str, parameters: Mapping[str, object], *, seconds: float | None = None
    ) -> BotAnswer:
        """What the platform answers. Raises NotReached, or NoAnswer if that cannot be known."""
        return _read(await self.call_raw(method, parameters, seconds=seconds))

    async def call_raw(
        self, method: str, parameters: Mapping[str, object], *, seconds: float | None = None
    ) -> bytes:
        """The same, with the answer as it came."""
        # Not by the client: it would read the address and all headers anew for each call.
        request = httpx2.Request(
            "POST",
            self._address(method),
            headers=_HEADERS,
            content=msgspec.json.encode(parameters),
            extensions={"timeout": _timeout(seconds).as_dict()},
        )
        return await self._answer_to(lambda http: http.send(request))

    async def upload(
        self, method: str, parameters: Mapping[str, object], field: str, name: str, content: bytes
    ) -> BotAnswer:
        """A call that carries a file."""
        data = {
            key: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for key, value in parameters.items()
        }
        files = {field: (name, content)}
        address, timeout = self._address(method), _timeout(UPLOAD_SECONDS)
        body = await self._answer_to(
            lambda http: http.post(address, timeout=timeout, data=data, files=files)
        )
        return _read(body)

    @asynccontextmanager
    async def download(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The content of a file of the platform, piece by piece. Raises NoAnswer."""
        address = f"{self.base}/file/bot{self.token}/{path}"
        try:
            async with self.lanes.lane() as http, http.stream("GET", address) as response:
                if response.status_code != httpx2.codes.OK:
                    raise NoAnswer(f"the file was answered with {response.status_code}")
                yield response.aiter_bytes()
        except httpx2.HTTPError as error:
            raise NoAnswer(_words(error)) from shortage_behind(error)

    def _address(self, method: str) -> httpx2.URL:
        return _address_of(f"{self.base}/bot{self.token}/{method}")

    async def _answer_to(
        self, ask: Callable[[httpx2.AsyncClient], Awaitable[httpx2.Response]]
    ) -> bytes:
        return (await answer_to(self.lanes, ask)).content


@lru_cache(64)
def _address_of(words: str) -> httpx2.URL:
    """There are a few methods, and each is called again and again."""
    return httpx2.URL(words)


def _timeout(seconds: float | None) -> httpx2.Timeout:
    return httpx2.Timeout(seconds or SEND_SECONDS, connect=CONNECT_SECONDS)


def _read(body: bytes) -> BotAnswer:
    try:
        answer = _answer.decode(body)
    except msgspec.DecodeError as error:
        raise NoAnswer(f"the answer cannot be read: {error}") from None
    if not answer.ok and answer.error_code >= httpx2.codes.INTERNAL_SERVER_ERROR:
        raise NoAnswer(answer.description)
    return answer


def _words(error: Exception) -> str:
    """What went wrong, without the address: the token is in it."""
    return type(error).__name__
