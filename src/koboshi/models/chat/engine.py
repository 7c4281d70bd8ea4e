"""One request to a server that streams its reply as events: sent, read to its end, and judged.

What is sent and what the events mean is a *language*: chat completions, or responses.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Protocol

import httpx2
import structlog
from anyio import CancelScope, current_time, move_on_after

from koboshi import __version__
from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.http_pool import HttpPool
from koboshi.models.chat.chunks import StreamError
from koboshi.models.chat.events import EventReader, LineTooLong
from koboshi.models.chat.failures import (
    CONNECTION_ERRORS,
    Complaint,
    broken,
    complaint_in_stream,
    complaint_of_answer,
    failure_of,
)
from koboshi.models.endpoint import NO_KEY, Endpoint
from koboshi.models.limits import ModelLimits
from koboshi.models.talk import ReplyOrigin
from koboshi.models.wording import MALFORMED, TOO_LONG, trace_of
from koboshi.ports.model import ModelReply, Request

log = structlog.get_logger()

OPENAI_URL = "https://api.openai.com/v1"
REQUESTS_MAX = 1_000
"""At once; the configuration allows no more turns."""
ERROR_BYTES_MAX = 1_000_000
END_SECONDS_MAX = 1.0
"""How long the end of a connection's answer is waited for when the reply is whole."""


class Reader(Protocol):
    """Takes the events of one stream. Nothing counts before the end."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        ...

    def take(self, body: bytes) -> None:
        """One event. Raises ModelBusy if it is none of a reply, StreamError if it says so itself,
        ModelRefused if there is too much of it."""
        ...

    def reply(self, name: str, origin: ReplyOrigin) -> ModelReply:
        """The reply, if the provider said that this is all of it. Raises ModelBusy if it is not
        whole, and ModelRefused if the model or its provider declined."""
        ...


class Language(Protocol):
    """What is spoken at an address."""

    @property
    def path(self) -> str:
        """Where it is spoken, behind the server's address."""
        ...

    def system(self, endpoint: Endpoint) -> str:
        """What a reply that was made in it is known by."""
        ...

    def body(self, request: Request, model: str, origin: ReplyOrigin) -> bytes: ...

    def reader(self, on_text: Callable[[str], None] | None, chars_max: int) -> Reader: ...


class StreamEngine:
    """A server that speaks a language, ready to be asked."""

    def __init__(
        self,
        endpoint: Endpoint,
        limits: ModelLimits,
        transport: httpx2.AsyncBaseTransport | None,
        language: Language,
    ) -> None:
        self._endpoint = endpoint
        self._language = language
        self._limits = limits
        # The engine watches how long everything takes but connecting.
        timeout = httpx2.Timeout(None, connect=limits.connect_s)
        self._lanes = HttpPool(
            count_max=REQUESTS_MAX, timeout=timeout, follow_redirects=True, transport=transport
        )
        self._extensions = {"timeout": timeout.as_dict()}
        base_url = (endpoint.base_url or OPENAI_URL).rstrip("/")
        self._url = f"{base_url}/{language.path}"
        self._origin = ReplyOrigin(system=language.system(endpoint), url=f"{base_url}/")
        self._address: httpx2.URL | None = None
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            "Authorization": f"Bearer {endpoint.api_key or NO_KEY}",
            "Content-Type": "application/json",
            "Connection": "keep-alive",
            "User-Agent": f"koboshi/{__version__}",
        }

    async def respond(self, request: Request, on_text: Callable[[str], None] | None) -> ModelReply:
        reader = self._language.reader(on_text, self._limits.reply_chars_max)
        body = self._language.body(request, self._endpoint.model, self._origin)
        patience = _Patience(self._limits)
        with patience.scope:
            await self._read(body, reader, patience)
        if patience.scope.cancelled_caught:
            raise ModelBusy(patience.words)
        reply = reader.reply(self._endpoint.name, self._origin)
        if reply.is_cut:
            log.warning("reply_cut_at_length", model=reply.model, tokens=reply.tokens_out)
        return reply

    async def aclose(self) -> None:
        await self._lanes.aclose()

    async def _read(self, body: bytes, reader: Reader, patience: "_Patience") -> None:
        """Have the reader take every event, up to the last."""
        events = EventReader()
        pieces = self._pieces(body)
        async with aclosing(pieces):
            async for piece in pieces:
                try:
                    bodies = events.feed(piece)
                except LineTooLong as error:
                    raise ModelRefused(TOO_LONG) from error
                for each in bodies:
                    self._take(each, reader)
                    if reader.is_over:
                        await _finish(pieces)
                        return
                if bodies:
                    patience.renew()

    def _take(self, body: bytes, reader: Reader) -> None:
        try:
            reader.take(body)
        except StreamError as error:
            raise self._failed(complaint_in_stream(error.body)) from error

    async def _pieces(self, body: bytes) -> AsyncGenerator[bytes]:
        """What comes from the server, as it comes. Raises ModelBusy or ModelRefused."""
        try:
            async with self._lanes.lane() as http:
                response = await http.send(self._request(body), stream=True)
                try:
                    if not response.is_success:
                        raise await self._failure(response)
                    async for piece in response.aiter_bytes():
                        yield piece
                finally:
                    await response.aclose()
        except CONNECTION_ERRORS as error:
            log.info("model_request_failed", model=self._endpoint.name, error=trace_of(error))
            raise broken(error) from error
        except (RuntimeError, ValueError) as error:
            # A client that was closed meanwhile, or a header that is none.
            log.info("model_request_failed", model=self._endpoint.name, error=trace_of(error))
            raise ModelBusy(f"{MALFORMED} ({type(error).__name__})") from error

    def _request(self, body: bytes) -> httpx2.Request:
        """Not by the client: it would read the address and all headers anew for each request."""
        if self._address is None:
            self._address = httpx2.URL(self._url)
        return httpx2.Request(
            "POST",
            self._address,
            headers=self._headers,
            content=body,
            extensions=self._extensions,
        )

    async def _failure(self, response: httpx2.Response) -> ModelBusy | ModelRefused:
        body = b""
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > ERROR_BYTES_MAX:
                break
        return self._failed(complaint_of_answer(response.status_code, response.headers, body))

    def _failed(self, complaint: Complaint) -> ModelBusy | ModelRefused:
        failure = failure_of(complaint, self._endpoint)
        log.info(
            "model_request_failed",
            model=self._endpoint.name,
            status=complaint.status,
            reason=failure.reason,
        )
        return failure


class _Patience:
    """How long the server is waited for: until it begins, between two events, and in all."""

    def __init__(self, limits: ModelLimits) -> None:
        self._limits = limits
        now = current_time()
        self._end = now + limits.total_s
        self._has_begun = False
        self.scope = CancelScope(deadline=min(now + limits.first_s, self._end))

    def renew(self) -> None:
        """It said something."""
        self._has_begun = True
        self.scope.deadline = min(current_time() + self._limits.idle_s, self._end)

    @property
    def words(self) -> str:
        limits = self._limits
        if self.scope.deadline >= self._end:
            what, seconds = "did not finish its reply", limits.total_s
        elif self._has_begun:
            what, seconds = "fell silent in the middle of its reply", limits.idle_s
        else:
            what, seconds = "did not begin to reply", limits.first_s
        return f"the provider {what} within {seconds:g} seconds"


async def _finish(pieces: AsyncGenerator[bytes]) -> None:
    """Let the answer come to its end, so that the connection can be used again. The reply is whole:
    whatever goes wrong here costs only the connection."""
    with move_on_after(END_SECONDS_MAX), suppress(ModelBusy, ModelRefused):
        async for _ in pieces:
            pass
