"""Calls of the Bot API, with one question answered about each that failed: did it get there?"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import msgspec

from koboshi.channels.telegram.types import Answer

_answer = msgspec.json.Decoder(Answer)
_HEADERS = {"Content-Type": "application/json"}
_NOT_BEGUN = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
"""Nothing of the request has left us."""


class NotReached(Exception):
    """The call did not get to the platform."""


class NoAnswer(Exception):
    """The call may have got to the platform, and what it made of it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotApi:
    """One bot. The token is part of every address, so no address is ever shown."""

    http: httpx2.AsyncClient
    base: str
    token: str = field(repr=False)

    async def call(
        self, method: str, parameters: Mapping[str, object], *, seconds: float | None = None
    ) -> Answer:
        """What the platform answers. Raises NotReached, or NoAnswer if that can not be known."""
        body = msgspec.json.encode(parameters)
        return _read(await self._post(method, seconds, content=body, headers=_HEADERS))

    async def call_raw(
        self, method: str, parameters: Mapping[str, object], *, seconds: float
    ) -> bytes:
        """The same, with the answer as it came."""
        body = msgspec.json.encode(parameters)
        return await self._post(method, seconds, content=body, headers=_HEADERS)

    async def upload(
        self, method: str, parameters: Mapping[str, object], field: str, name: str, content: bytes
    ) -> Answer:
        """A call that carries a file."""
        data = {
            key: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for key, value in parameters.items()
        }
        return _read(await self._post(method, 300, data=data, files={field: (name, content)}))

    @asynccontextmanager
    async def download(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The content of a file of the platform, piece by piece. Raises NoAnswer."""
        address = f"{self.base}/file/bot{self.token}/{path}"
        try:
            async with self.http.stream("GET", address) as response:
                if response.status_code != httpx2.codes.OK:
                    raise NoAnswer(f"the file was answered with {response.status_code}")
                yield response.aiter_bytes()
        except httpx2.HTTPError as error:
            raise NoAnswer(type(error).__name__) from None

    async def _post(self, method: str, seconds: float | None, **content: object) -> bytes:
        address = f"{self.base}/bot{self.token}/{method}"
        timeout = (
            httpx2.USE_CLIENT_DEFAULT if seconds is None else httpx2.Timeout(seconds, connect=10)
        )
        try:
            response = await self.http.post(address, timeout=timeout, **content)  # type: ignore[arg-type]
        except _NOT_BEGUN as error:
            raise NotReached(_words(error)) from None
        except httpx2.HTTPError as error:
            raise NoAnswer(_words(error)) from None
        if response.status_code >= httpx2.codes.INTERNAL_SERVER_ERROR:
            raise NoAnswer(f"the platform answered {response.status_code}")
        return response.content


def _read(body: bytes) -> Answer:
    try:
        answer = _answer.decode(body)
    except msgspec.DecodeError as error:
        raise NoAnswer(f"the answer can not be read: {error}") from None
    if not answer.ok and answer.error_code >= httpx2.codes.INTERNAL_SERVER_ERROR:
        raise NoAnswer(answer.description)
    return answer


def _words(error: Exception) -> str:
    """What went wrong, without the address: the token is in it."""
    return type(error).__name__
