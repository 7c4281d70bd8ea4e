"""One request to a provider: sent, read to its end, and judged.

Importing this module loads the provider's library.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, contextmanager
from typing import cast

import httpx2
import structlog
from anyio import move_on_after
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.models.clients import bounded, open_client, open_http, settings_for
from koboshi.models.conversation import messages_of, parameters_of, record_message
from koboshi.models.endpoint import Endpoint
from koboshi.models.failures import PROVIDER_ERRORS, failure_of
from koboshi.models.limits import ModelLimits
from koboshi.models.replies import reply_of
from koboshi.models.talk import ReplyOrigin
from koboshi.models.wording import ENDED_EARLY, TOO_LONG, clean, trace_of
from koboshi.ports.model import ModelReply, Request

log = structlog.get_logger()


class Engine:
    """The provider's library, ready to be asked."""

    def __init__(
        self,
        endpoint: Endpoint,
        limits: ModelLimits,
        transport: httpx2.AsyncBaseTransport | None,
    ) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._http = open_http(limits, transport)
        self._client = open_client(endpoint, self._http)
        self._settings = settings_for(endpoint)
        self._origin = ReplyOrigin(system=self._client.system, url=self._client.base_url or "")

    async def respond(self, request: Request, on_text: Callable[[str], None] | None) -> ModelReply:
        watch = _Watch(on_text, self._limits.reply_chars_max)
        settings = bounded(self._settings, request.tokens_out_max)
        pieces = self._pieces(self._messages(request), parameters_of(request), settings)
        with _within(self._limits.total_s, "did not finish its reply"):
            async with aclosing(pieces):
                async for piece in pieces:
                    if isinstance(piece, ModelResponse):
                        return self._reply(piece)
                    watch.see(piece)
        raise ModelBusy(ENDED_EARLY)

    async def aclose(self) -> None:
        await self._http.aclose()

    def _messages(self, request: Request) -> list[ModelMessage]:
        if request.wants_summary:
            return record_message(request.steps)
        return messages_of(request.steps, self._origin)

    def _reply(self, response: ModelResponse) -> ModelReply:
        reply = reply_of(response, self._endpoint.name)
        if reply.is_cut:
            log.warning("reply_cut_at_length", model=reply.model, tokens=reply.tokens_out)
        return reply

    async def _pieces(
        self,
        messages: list[ModelMessage],
        parameters: ModelRequestParameters,
        settings: ModelSettings,
    ) -> AsyncGenerator[ModelResponseStreamEvent | ModelResponse]:
        """What comes from the provider, piece by piece; at the end of the stream, all of it."""
        try:
            async with AsyncExitStack() as stack:
                with _within(self._limits.first_s, "did not begin to reply"):
                    stream = await stack.enter_async_context(
                        model_request_stream(
                            self._client,
                            messages,
                            model_settings=settings,
                            model_request_parameters=parameters,
                            instrument=False,
                        )
                    )
                events = cast(AsyncGenerator[ModelResponseStreamEvent], aiter(stream))
                await stack.enter_async_context(aclosing(events))
                while True:
                    with _within(self._limits.idle_s, "fell silent in the middle of its reply"):
                        event = await anext(events, None)
                    if event is None:
                        break
                    yield event
                response = stream.get()
            yield response
        except PROVIDER_ERRORS as error:
            failure = failure_of(error, self._endpoint)
            log.info(
                "model_request_failed",
                model=self._endpoint.name,
                status=failure.status,
                reason=failure.reason,
                error=trace_of(error),
            )
            raise failure from error


@contextmanager
def _within(seconds: float, what: str) -> Iterator[None]:
    with move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise ModelBusy(f"the provider {what} within {seconds:g} seconds")


class _Watch:
    """Looks at the pieces of a reply as they come: tells the text, and bounds the whole."""

    def __init__(self, on_text: Callable[[str], None] | None, chars_max: int) -> None:
        self._on_text = on_text
        self._room = chars_max
        self._has_text = False

    def see(self, event: ModelResponseStreamEvent) -> None:
        match event:
            case PartStartEvent(part=TextPart(content=str() as text)):
                self._tell(f"\n\n{text}" if self._has_text else text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=str() as text)):
                self._tell(text)
            case PartStartEvent(part=ThinkingPart(content=str() as text)):
                self._count(text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str() as text)):
                self._count(text)
            case PartStartEvent(part=ToolCallPart(args=str() as text)):
                self._count(text)
            case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str() as text)):
                self._count(text)
            case _:
                pass

    def _tell(self, text: str) -> None:
        self._count(text)
        if text and self._on_text is not None:
            self._has_text = True
            self._on_text(clean(text))

    def _count(self, text: str) -> None:
        self._room -= len(text)
        if self._room < 0:
            raise ModelRefused(TOO_LONG)
