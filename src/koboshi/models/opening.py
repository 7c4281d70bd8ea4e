"""Which engine speaks to a server that streams events."""

import httpx2

from koboshi.models.chat.engine import StreamEngine
from koboshi.models.chat.language import Chat
from koboshi.models.endpoint import Endpoint, Provider
from koboshi.models.limits import ModelLimits
from koboshi.models.responses.language import ChoosingEngine, ResponsesEngine


def stream_engine(
    endpoint: Endpoint, limits: ModelLimits, transport: httpx2.AsyncBaseTransport | None
) -> StreamEngine | ResponsesEngine | ChoosingEngine:
    match endpoint.provider:
        case Provider.OPENAI:
            return ChoosingEngine(endpoint, limits, transport)
        case Provider.OPENAI_RESPONSES:
            return ResponsesEngine(endpoint, limits, transport)
        case _:
            return StreamEngine(endpoint, limits, transport, Chat())
