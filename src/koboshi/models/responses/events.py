"""The events of a response, put together to a whole reply, or to none."""

import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec

from koboshi.domain.errors import ModelBusy, ModelCut, ModelRefused
from koboshi.models.chat.chunks import DONE, StreamError, is_object
from koboshi.models.responses.items import Item, write_raw
from koboshi.models.talk import ReplyOrigin
from koboshi.models.wording import (
    BROKE_OFF,
    CUT_AT_LENGTH,
    ENDED_EARLY,
    FILTERED,
    MALFORMED,
    NO_ARGUMENTS,
    TOO_LONG,
    clean,
    declined,
)
from koboshi.ports.model import CallRequest, ModelReply

ITEM_COST = 100
"""What an item takes of the room for a reply before it says anything."""
ITEM_BYTES_PER_CHAR = 8
"""JSON may take so much for a character of an item, and there are names around it."""

_SPOKEN = frozenset({"response.output_text.delta"})
_COUNTED = frozenset(
    {
        "response.function_call_arguments.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
    }
)


class _Event(msgspec.Struct):
    type: str = ""
    delta: Any = None
    item: Any = None
    output_index: int = 0
    response: Any = None
    error: Any = None
    code: Any = None
    message: Any = None


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _Usage(msgspec.Struct):
    input_tokens: _Count = 0
    output_tokens: _Count = 0


_decoder = msgspec.json.Decoder(_Event)


class ResponseReader:
    """A `Reader`. The text is told as it comes; nothing counts before the end."""

    def __init__(self, on_text: Callable[[str], None] | None, chars_max: int, model: str) -> None:
        self._on_text = on_text
        self._room = chars_max
        self._bytes_room = ITEM_BYTES_PER_CHAR * chars_max
        self._chars_max = chars_max
        self._model = model
        self._items: dict[int, Item] = {}
        self._has_text = False
        self._is_begun = False
        self._refusal = ""
        self._end: dict[str, Any] | None = None
        self.is_over = False
        """Whether the server said that nothing more will come."""

    def take(self, body: bytes) -> None:
        if body == DONE:
            self.is_over = True
            return
        event = _event_in(body)
        match event.type:
            case "response.completed" | "response.incomplete":
                self._take_end(event.response)
            case "response.failed":
                error = event.response.get("error") if isinstance(event.response, dict) else None
                raise StreamError({"error": error})
            case "error":
                raise StreamError(event.error or {"code": event.code, "message": event.message})
            case "response.output_item.added":
                self._count(ITEM_COST)
                self._is_begun = False
            case "response.output_item.done":
                self._take_item(event, len(body))
            case "response.refusal.delta":
                self._refusal += self._counted(event.delta)
            case kind if kind in _SPOKEN:
                self._tell(self._counted(event.delta))
            case kind if kind in _COUNTED:
                self._counted(event.delta)
            case "" if event.error:
                raise StreamError(event.error)
            case "":
                raise ModelBusy(MALFORMED)
            case _:
                pass  # what is known at its end, too, or is not for us

    def reply(self, name: str, origin: ReplyOrigin) -> ModelReply:
        """The reply, if the provider said that this is all of it.

        Raises ModelBusy if it is not whole, and ModelRefused if the model or its provider declined.
        """
        end = self._require_end()
        output = self._output(end)
        called = [item for item in output if item.get("type") == "function_call"]
        is_cut = self._incomplete == "max_output_tokens"
        if called and is_cut:
            # The last call may be cut, and its arguments a valid beginning.
            raise ModelCut(CUT_AT_LENGTH)
        calls = tuple(map(_call_of, called))
        refusal = self._refusal or "".join(_parts_in(output, "refusal", "refusal"))
        if refusal:
            raise ModelRefused(declined(refusal))
        usage = _usage_in(end.get("usage"))
        texts = ["".join(_parts_in([item], "output_text", "text")) for item in output]
        text = clean("\n\n".join(each for each in texts if each))
        if len(text) + sum(len(call.arguments) for call in calls) > self._chars_max:
            raise ModelRefused(TOO_LONG)
        return ModelReply(
            text=text,
            calls=calls,
            model=name,
            tokens_in=usage.input_tokens,
            tokens_out=usage.output_tokens,
            raw=write_raw(output, origin, self._model),
            is_cut=is_cut,
        )

    @property
    def _incomplete(self) -> str:
        """Why the response is not complete; nothing if it is."""
        match self._end:
            case {"incomplete_details": {"reason": str() as reason}}:
                return reason
            case {"status": "incomplete"}:
                return "unknown"
            case _:
                return ""

    def _require_end(self) -> dict[str, Any]:
        """The stream may have stopped anywhere; what counts is that it was called the end."""
        if self._end is None:
            raise ModelBusy(ENDED_EARLY)
        match self._incomplete:
            case "" | "max_output_tokens":
                return self._end
            case "content_filter":
                raise ModelRefused(FILTERED)
            case _:
                raise ModelBusy(BROKE_OFF)

    def _output(self, end: dict[str, Any]) -> list[Item]:
        """The items as they were told one by one, each when it was done: only there thoughts are
        sealed for good. Some servers tell them in the end alone."""
        told = [self._items[index] for index in sorted(self._items)]
        output = told or end.get("output")
        if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
            raise ModelBusy(MALFORMED)
        return output

    def _take_end(self, response: object) -> None:
        if not isinstance(response, dict):
            raise ModelBusy(MALFORMED)
        self._end, self.is_over = response, True

    def _take_item(self, event: _Event, size: int) -> None:
        if not isinstance(event.item, dict):
            raise ModelBusy(MALFORMED)
        self._bytes_room -= size
        if self._bytes_room < 0:
            raise ModelRefused(TOO_LONG)
        self._items[event.output_index] = event.item

    def _tell(self, text: str) -> None:
        if text and self._on_text is not None:
            self._on_text(clean(text if self._is_begun or not self._has_text else f"\n\n{text}"))
        self._has_text = self._has_text or bool(text)
        self._is_begun = True

    def _counted(self, delta: object) -> str:
        if not isinstance(delta, str):
            raise ModelBusy(MALFORMED)
        self._count(len(delta))
        return delta

    def _count(self, chars: int) -> None:
        self._room -= chars
        if self._room < 0:
            raise ModelRefused(TOO_LONG)


def _event_in(body: bytes) -> _Event:
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise ModelBusy(MALFORMED) from error
    except (ValueError, RecursionError):
        pass
    try:  # half a character is no JSON to the strict, and comes where a text is cut in pieces
        return msgspec.convert(json.loads(body), _Event)
    except (ValueError, RecursionError) as error:
        raise ModelBusy(MALFORMED) from error


def _parts_in(output: list[Item], kind: str, field: str) -> Iterator[str]:
    """The words of all parts of a kind in the messages."""
    for item in output:
        content = item.get("content") if item.get("type") == "message" else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == kind:
                words = part.get(field)
                if not isinstance(words, str):
                    raise ModelBusy(MALFORMED)
                yield words


def _call_of(item: Item) -> CallRequest:
    call_id, tool, arguments = (item.get(name) for name in ("call_id", "name", "arguments"))
    if not isinstance(call_id, str) or not isinstance(tool, str):
        raise ModelBusy(MALFORMED)
    text = clean(arguments) if isinstance(arguments, str) and arguments.strip() else "{}"
    if not tool or not is_object(text) or item.get("status") == "incomplete":
        raise ModelBusy(NO_ARGUMENTS)
    return CallRequest(provider_id=clean(call_id), tool=clean(tool), arguments=text)


def _usage_in(usage: object) -> _Usage:
    try:
        return msgspec.convert(usage, _Usage)
    except msgspec.ValidationError:
        return _Usage()
