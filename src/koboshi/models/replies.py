"""What the library made of a provider's stream, as a reply of ours: whole, or not at all."""

import msgspec
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from koboshi.domain.errors import ModelBusy, ModelCut, ModelRefused
from koboshi.models.wording import (
    BROKE_OFF,
    CUT_AT_LENGTH,
    ENDED_EARLY,
    FILTERED,
    MALFORMED,
    NO_ARGUMENTS,
    NO_CALL,
    clean,
    declined,
)
from koboshi.ports.model import CallRequest, ModelReply


def reply_of(response: ModelResponse, name: str) -> ModelReply:
    """The reply, if the provider said that this is all of it.

    Raises ModelBusy if it is not whole, and ModelRefused if the model or its provider declined.
    """
    _require_end(response)
    _require_form(response)
    parts = [part for part in response.parts if isinstance(part, ToolCallPart)]
    is_cut = response.finish_reason == "length"
    if parts and is_cut:
        # The last call may be cut, and its arguments a valid beginning.
        raise ModelCut(CUT_AT_LENGTH)
    calls = tuple(_call_of(part) for part in parts)
    if not calls and response.finish_reason == "tool_call":
        raise ModelBusy(NO_CALL)
    return ModelReply(
        text=clean(response.text or ""),
        calls=calls,
        model=name,
        tokens_in=_count(response.usage.input_tokens),
        tokens_out=_count(response.usage.output_tokens),
        raw=_raw_of(response),
        is_cut=is_cut,
    )


def _count(tokens: int) -> int:
    """What was used, as a number that can be stored; 0 for a number that cannot be true."""
    return tokens if 0 <= tokens <= 2**53 else 0


def _require_end(response: ModelResponse) -> None:
    """The stream may have stopped anywhere; what counts is that the provider called it the end."""
    details = response.provider_details or {}
    if "refusal" in details:
        raise ModelRefused(declined(str(details["refusal"])))
    if response.finish_reason == "content_filter":
        raise ModelRefused(FILTERED)
    if not isinstance(details.get("finish_reason"), str) or response.state != "complete":
        raise ModelBusy(ENDED_EARLY)
    if response.finish_reason == "error":
        raise ModelBusy(BROKE_OFF)


def _require_form(response: ModelResponse) -> None:
    """The library passes on what it was sent, whatever its types say."""
    for part in response.parts:
        if not all(isinstance(words, str) for words in _words_in(part)):
            raise ModelBusy(MALFORMED)


def _words_in(part: ModelResponsePart) -> tuple[object, ...]:
    if isinstance(part, TextPart | ThinkingPart):
        return (part.content,)
    return (part.tool_name, part.tool_call_id) if isinstance(part, ToolCallPart) else ()


def _call_of(part: ToolCallPart) -> CallRequest:
    match part.args:
        case None | "":
            arguments = "{}"
        case str() as text:
            arguments = clean(text)
        case mapping:
            arguments = msgspec.json.encode(mapping).decode()
    if not part.tool_name or not _is_object(arguments):
        raise ModelBusy(NO_ARGUMENTS)
    return CallRequest(
        provider_id=clean(part.tool_call_id), tool=clean(part.tool_name), arguments=arguments
    )


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def _raw_of(response: ModelResponse) -> str:
    """The provider's own form, if text and calls alone would lose something: thoughts, signatures.

    It is empty otherwise: most replies are rebuilt without loss, and are stored only once.
    """
    texts = sum(isinstance(part, TextPart) for part in response.parts)
    is_plain = all(_is_plain(part) for part in response.parts)
    if is_plain and all(isinstance(part, TextPart) for part in response.parts[:texts]):
        return ""
    try:
        return ModelMessagesTypeAdapter.dump_json([response]).decode()
    except ValueError:  # half a character in a thought: it cannot be stored, so it is left out
        return ""


def _is_plain(part: ModelResponsePart) -> bool:
    match part:
        case TextPart(id=None, provider_details=None):
            return True
        case ToolCallPart(id=None, provider_details=None):
            return True
        case _:
            return False
