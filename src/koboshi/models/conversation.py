"""A conversation in the form of the model library, for the providers that are reached by it."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import structlog
from pydantic import ValidationError
from pydantic_ai.messages import (
    BinaryContent,
    InstructionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from koboshi.domain.transcript import Call, Step
from koboshi.models.talk import (
    ModelSaid,
    ModelsSide,
    ReplyOrigin,
    Side,
    UsersSide,
    record_of,
    talk_of,
)
from koboshi.ports.model import Request, ToolSpec

log = structlog.get_logger()


def messages_of(steps: Sequence[Step], origin: ReplyOrigin) -> list[ModelMessage]:
    """The conversation that these steps are, for a model at `origin`."""
    return [_message_of(side, origin) for side in talk_of(steps)]


def record_message(steps: Sequence[Step]) -> list[ModelMessage]:
    """These steps as a record, in one message of the user's side."""
    return [ModelRequest(parts=[UserPromptPart(record_of(steps))])]


def parameters_of(request: Request) -> ModelRequestParameters:
    """The tools and the system prompt of a request."""
    system = request.system.strip()
    return ModelRequestParameters(
        function_tools=[_definition(spec) for spec in request.tools],
        instruction_parts=[InstructionPart(content=system)] if system else None,
    )


def read_raw(raw: str) -> ModelResponse | None:
    """The reply as its provider made it; None if there is none that this version can read."""
    if not raw:
        return None
    try:
        messages = ModelMessagesTypeAdapter.validate_json(raw)
    except ValidationError as error:
        log.info("raw_reply_unreadable", errors=error.error_count())
        return None
    return next((each for each in messages if isinstance(each, ModelResponse)), None)


def _message_of(side: Side, origin: ReplyOrigin) -> ModelMessage:
    match side:
        case UsersSide(returned=returned, text=text, pictures=pictures):
            returns = [
                ToolReturnPart(each.tool, each.text, tool_call_id=each.wire_id) for each in returned
            ]
            seen = [
                BinaryContent(data=each.content, media_type=each.media_type) for each in pictures
            ]
            prompts = [UserPromptPart([text, *seen] if seen else text)] if text else []
            return ModelRequest(parts=[*returns, *prompts])
        case ModelsSide(said=all_said):
            parts = [part for said in all_said for part in _parts_of(said, origin)]
            return ModelResponse(parts=parts)


def _parts_of(said: ModelSaid, origin: ReplyOrigin) -> list[ModelResponsePart]:
    """What the model said: as its provider made it if it is the same, else rebuilt."""
    reply = said.reply
    response = read_raw(reply.raw) if reply is not None else None
    if (
        reply is not None
        and response is not None
        and _is_made_by(origin, response)
        and _has_calls(response, reply.calls)
    ):
        wanted = iter(said.wire_ids)
        return [
            replace(part, tool_call_id=next(wanted)) if isinstance(part, ToolCallPart) else part
            for part in response.parts
            if not (isinstance(part, TextPart) and not part.content.strip())
        ]
    calls = [
        ToolCallPart(call.tool, call.arguments, tool_call_id=wire_id)
        for call, wire_id in said.calls
    ]
    return [*([TextPart(said.text)] if said.text.strip() else []), *calls]


def _is_made_by(origin: ReplyOrigin, response: ModelResponse) -> bool:
    return (response.provider_name, response.provider_url) == (origin.system, origin.url)


def _has_calls(response: ModelResponse, calls: Sequence[Call]) -> bool:
    """Whether the raw form holds just the calls that were stored: those count."""
    made = [part.tool_name for part in response.parts if isinstance(part, ToolCallPart)]
    return made == [call.tool for call in calls]


def _definition(spec: ToolSpec) -> ToolDefinition:
    # Not strict: the schema is sent as it is written, and the runtime checks the arguments.
    return ToolDefinition(
        name=spec.name,
        description=spec.description,
        parameters_json_schema=msgspec.json.decode(spec.parameters, type=dict),
        strict=False,
    )
