"""Calls of the client-server interface of Matrix."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote

import httpx2
import msgspec
from anyio import sleep

from koboshi import __version__
from koboshi.channels.common.calls import NoAnswer, answer_to
from koboshi.channels.matrix.types import ErrorAnswer
from koboshi.domain.errors import FileNotHad
from koboshi.domain.resource_exhaustion import shortage_behind
from koboshi.http_pool import HttpPool

CLIENT = "/_matrix/client/v3"
MEDIA = "/_matrix/media/v3"
MEDIA_DOWNLOAD = "/_matrix/client/v1/media/download"
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0
UPLOAD_SECONDS = 300.0
TRIES_MAX = 5
WAIT_SECONDS_MAX = 30.0
TOO_MANY = 429
BY_STATUS = frozenset({401, 413, TOO_MANY})
"""Refusals that hold whatever stands before the homeserver: the token, a size, a pause."""
OK = 200
GONE = frozenset({403, 404})
"""What was asked about is gone, or we are."""

Read = TypeVar("Read")


class _Uploaded(msgspec.Struct, frozen=True, kw_only=True):
    content_uri: str


class MatrixRefused(Exception):
    """The homeserver says no. Whatever was asked was certainly not done."""

    def __init__(self, status: int, error: ErrorAnswer) -> None:
        super().__init__(f"{error.errcode or status}: {error.error}".rstrip(": "))
        self.status = status
        self.code = error.errcode
        self.retry_after_ms = error.retry_after_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixApi:
    """One account at its homeserver. The token is in a header, and is never shown."""

    lanes: HttpPool
    base: str
    token: str = field(repr=False)

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> bytes:
        """What the homeserver answers. Raises MatrixRefused, NotReached, or NoAnswer if it cannot
        be known what became of the call."""
        request = httpx2.Request(
            method,
            f"{self.base}{path}",
            params=dict(query or {}),
            headers=self._headers("application/json"),
            content=None if body is None else msgspec.json.encode(body),
            extensions={"timeout": _timeout(seconds).as_dict()},
        )
        return _taken(await answer_to(self.lanes, lambda http: http.send(request)))

    async def call_patiently(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> bytes:
        """The same for what can be repeated: a homeserver that wants a pause gets it here."""
        tries = 0
        while True:
            tries += 1
            try:
                return await self.call(method, path, body, query=query, seconds=seconds)
            except MatrixRefused as refused:
                wait_s = (refused.retry_after_ms or 1_000) / 1000
                if refused.status != TOO_MANY or tries == TRIES_MAX or wait_s > WAIT_SECONDS_MAX:
                    raise
                await sleep(wait_s)

    async def ask_patiently(
        self,
        kind: type[Read],
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> Read:
        """The same, read as `kind`."""
        answer = await self.call_patiently(method, path, body, query=query, seconds=seconds)
        return _read(answer, kind)

    async def upload(self, name: str, kind: str, content: bytes) -> str:
        """Give the homeserver a file. Returns its address: `mxc://…`."""
        request = httpx2.Request(
            "POST",
            f"{self.base}{MEDIA}/upload",
            params={"filename": name} if name else {},
            headers=self._headers(kind),
            content=content,
            extensions={"timeout": _timeout(UPLOAD_SECONDS).as_dict()},
        )
        answer = _taken(await answer_to(self.lanes, lambda http: http.send(request)))
        return _read(answer, _Uploaded).content_uri

    @asynccontextmanager
    async def download(self, address: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The content of a file, piece by piece; no link is followed. Raises NotReached or
        NoAnswer, and FileNotHad if it never can be had."""
        server, slash, media = address.removeprefix("mxc://").partition("/")
        if not address.startswith("mxc://") or not slash or "/" in media:
            raise FileNotHad("the message does not say where it is")
        url = f"{self.base}{MEDIA_DOWNLOAD}/{quote(server, safe='')}/{quote(media, safe='')}"
        headers = self._headers("application/json")
        try:
            async with (
                self.lanes.lane() as http,
                http.stream("GET", url, headers=headers) as response,
            ):
                if response.status_code in (400, 403, 404, 410):
                    raise FileNotHad("the homeserver does not have it any more")
                if response.status_code != OK:
                    raise NoAnswer(f"the file was answered with {response.status_code}")
                yield response.aiter_bytes()
        except httpx2.HTTPError as error:
            raise NoAnswer(type(error).__name__) from shortage_behind(error)

    def _headers(self, kind: str) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": kind,
            "User-Agent": f"koboshi/{__version__}",
        }


def room_path(room: str, *rest: str) -> str:
    """The path of something in a room."""
    return "/".join((f"{CLIENT}/rooms", *(quote(part, safe="") for part in (room, *rest))))


def _read(answer: bytes, kind: type[Read]) -> Read:
    try:
        return msgspec.json.decode(answer, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NoAnswer(f"the answer cannot be read: {error}") from None


def _taken(response: httpx2.Response) -> bytes:
    if response.status_code == OK:
        return response.content
    try:
        error = msgspec.json.decode(response.content, type=ErrorAnswer)
    except (msgspec.DecodeError, RecursionError):
        error = ErrorAnswer()
    if not error.errcode and response.status_code not in BY_STATUS:
        # A homeserver names its refusals. This is of what stands before it.
        raise NoAnswer(f"the homeserver answered {response.status_code}")
    raise MatrixRefused(response.status_code, error)


def _timeout(seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(seconds, connect=CONNECT_SECONDS)
