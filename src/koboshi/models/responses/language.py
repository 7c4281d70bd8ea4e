"""Responses, and how a model is found to speak them."""

from collections.abc import Callable

import httpx2
import structlog

from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.models.chat.engine import StreamEngine
from koboshi.models.chat.failures import SpeaksResponses
from koboshi.models.chat.language import Chat
from koboshi.models.endpoint import Endpoint
from koboshi.models.limits import ModelLimits
from koboshi.models.responses.body import body_of
from koboshi.models.responses.events import ResponseReader
from koboshi.models.talk import ReplyOrigin
from koboshi.ports.model import ModelReply, Request

log = structlog.get_logger()

BAD_REQUEST = 400
_ABOUT_SEALS = "encrypted"
_NO_SEALS = "not supported"


class Responses:
    """A `Language`."""

    path = "responses"

    def __init__(self, endpoint: Endpoint, *, is_sealing: bool = True) -> None:
        self._model = endpoint.model
        self._is_sealing = is_sealing

    def system(self, endpoint: Endpoint) -> str:  # noqa: ARG002  (the contract's; ours is fixed)
        return "openai-responses"

    def body(self, request: Request, model: str, origin: ReplyOrigin) -> bytes:
        return body_of(request, model, origin, is_sealing=self._is_sealing)

    def reader(self, on_text: Callable[[str], None] | None, chars_max: int) -> ResponseReader:
        return ResponseReader(on_text, chars_max, self._model)


class ResponsesEngine:
    """A server that speaks responses. Thoughts go to and fro where the model has any."""

    def __init__(
        self,
        endpoint: Endpoint,
        limits: ModelLimits,
        transport: httpx2.AsyncBaseTransport | None,
    ) -> None:
        self._name = endpoint.name
        self._sealing = StreamEngine(endpoint, limits, transport, Responses(endpoint))
        plainly = Responses(endpoint, is_sealing=False)
        self._plain = StreamEngine(endpoint, limits, transport, plainly)
        self._has_thoughts = True

    async def respond(self, request: Request, on_text: Callable[[str], None] | None) -> ModelReply:
        if not self._has_thoughts:
            return await self._plain.respond(request, on_text)
        try:
            return await self._sealing.respond(request, on_text)
        except ModelRefused as refusal:
            said = refusal.reason.lower()
            if refusal.status != BAD_REQUEST or _ABOUT_SEALS not in said:
                raise
            # A model without thoughts refuses to seal them, always. Seals of old thoughts may be of
            # another key or account: then this one request goes without them.
            self._has_thoughts = _NO_SEALS not in said
            log.info("model_seals_refused", model=self._name, reason=refusal.reason)
        return await self._plain.respond(request, on_text)

    async def aclose(self) -> None:
        await self._sealing.aclose()
        await self._plain.aclose()


class ChoosingEngine:
    """A server that speaks chat completions, unless it says that the model speaks responses only.
    What it said is known until the process ends, and learned again by the next one."""

    def __init__(
        self,
        endpoint: Endpoint,
        limits: ModelLimits,
        transport: httpx2.AsyncBaseTransport | None,
    ) -> None:
        self._name = endpoint.name
        self._chat = StreamEngine(endpoint, limits, transport, Chat())
        self._responses = ResponsesEngine(endpoint, limits, transport)
        self._speaks_responses = False

    async def respond(self, request: Request, on_text: Callable[[str], None] | None) -> ModelReply:
        if self._speaks_responses:
            return await self._responses.respond(request, on_text)
        try:
            return await self._chat.respond(request, on_text)
        except SpeaksResponses as said:
            log.info("model_speaks_responses", model=self._name, reason=said.reason)
        try:
            reply = await self._responses.respond(request, on_text)
        except ModelBusy:
            self._speaks_responses = True
            raise
        self._speaks_responses = True
        return reply

    async def aclose(self) -> None:
        await self._chat.aclose()
        await self._responses.aclose()
