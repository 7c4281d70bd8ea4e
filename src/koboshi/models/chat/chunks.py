"""The pieces of a stream of chat completions, put together to a whole reply, or to none."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from koboshi.domain.errors import ModelBusy, ModelCut, ModelRefused
from koboshi.models.chat.raw import TAGGED, CalledPart, Part, Text, Thought, write_raw
from koboshi.models.talk import ReplyOrigin
from koboshi.models.wording import (
    BROKE_OFF,
    CUT_AT_LENGTH,
    ENDED_EARLY,
    FILTERED,
    MALFORMED,
    NO_ARGUMENTS,
    NO_CALL,
    TOO_LONG,
    clean,
    declined,
)
from koboshi.ports.model import CallRequest, ModelReply

THOUGHT_FIELDS = ("reasoning", "reasoning_content")
"""Where servers that show thoughts put them; the first that has any counts."""

DONE = b"[DONE]"

CALL_COST = 100
"""What a call takes of the room for a reply before it says anything."""


class _ContentPart(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _FunctionDelta(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _FunctionDelta | None = None
    extra_content: Any = None


class _Delta(msgspec.Struct):
    content: str | list[str | _ContentPart] | None = None
    refusal: str | None = None
    reasoning: Any = None
    reasoning_content: Any = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _Usage(msgspec.Struct):
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Chunk)


class StreamError(Exception):
    """The provider sent an error instead of the rest of its reply."""

    def __init__(self, body: object) -> None:
        super().__init__("an error in the stream")
        self.body = body


@dataclass(slots=True)
class _Pieces:
    """A part in the making: a text, a thought if it has a field, or a call."""

    thought_field: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def part(self) -> Part:
        words = "".join(self.pieces)
        return Thought(words, self.thought_field) if self.thought_field else Text(words)


@dataclass(slots=True)
class _CallPieces:
    call_id: str = ""
    tool: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: Any = None

    @property
    def part(self) -> Part:
        details = None if self.extra is None else {"extra_content": self.extra}
        return CalledPart(self.tool, "".join(self.pieces), self.call_id, None, details)


class ReplyReader:
    """Takes the events of one stream. The text is told as it comes; nothing counts before the
    end."""

    def __init__(self, on_text: Callable[[str], None] | None, chars_max: int) -> None:
        self._on_text = on_text
        self._room = chars_max
        self._parts: list[_Pieces | _CallPieces] = []
        self._calls: dict[int, _CallPieces] = {}
        self._has_text = False
        self._is_in_tags = False
        self._refusal = ""
        self._finish = ""
        self._usage: Any = None
        self.is_over = False
        """Whether the server said that nothing more will come."""

    def take(self, body: bytes) -> None:
        """One event. Raises ModelBusy if it is none of a reply, StreamError if it says so itself,
        ModelRefused if there is too much of it."""
        if body == DONE:
            self.is_over = True
            return
        chunk = _chunk_in(body)
        if chunk.error:
            raise StreamError(chunk.error)
        if chunk.usage is not None:
            self._usage = chunk.usage  # where it comes more than once, the last one is of all
        if not chunk.choices:
            return
        choice = chunk.choices[0]
        if choice.finish_reason:
            self._finish = choice.finish_reason
        if choice.delta is not None:
            self._take_delta(choice.delta)

    def reply(self, name: str, origin: ReplyOrigin) -> ModelReply:
        """The reply, if the provider said that this is all of it.

        Raises ModelBusy if it is not whole, and ModelRefused if the model or its provider declined.
        """
        self._require_end()
        is_cut = self._finish == "length"
        if is_cut and any(isinstance(part, _CallPieces) for part in self._parts):
            # The last call may be cut, and its arguments a valid beginning.
            raise ModelCut(CUT_AT_LENGTH)
        calls = tuple(_call_of(part) for part in self._parts if isinstance(part, _CallPieces))
        if not calls and self._finish in ("tool_calls", "function_call"):
            raise ModelBusy(NO_CALL)
        parts = [part.part for part in self._parts]
        for part in parts:
            if isinstance(part, Thought | CalledPart):
                part.provider_name = origin.system
        usage = _usage_in(self._usage)
        return ModelReply(
            text=clean("\n\n".join(part.content for part in parts if isinstance(part, Text))),
            calls=calls,
            model=name,
            tokens_in=usage.prompt_tokens,
            tokens_out=usage.completion_tokens,
            raw=write_raw(parts, origin),
            is_cut=is_cut,
        )

    def _require_end(self) -> None:
        """The stream may have stopped anywhere; what counts is that it was called the end."""
        if not self._finish:
            raise ModelBusy(ENDED_EARLY)
        if self._refusal:
            raise ModelRefused(declined(self._refusal))
        if self._finish == "content_filter":
            raise ModelRefused(FILTERED)
        if self._finish == "error":
            raise ModelBusy(BROKE_OFF)

    def _take_delta(self, delta: _Delta) -> None:
        if delta.refusal:
            self._count(delta.refusal)
            self._refusal += delta.refusal
            return
        for where in THOUGHT_FIELDS:
            thought = getattr(delta, where)
            if isinstance(thought, str) and thought:
                self._add(thought, where)
                break
        if delta.content:
            self._take_text(_text_in(delta.content))
        for call in delta.tool_calls or ():
            self._take_call(call)

    def _take_text(self, text: str) -> None:
        """Some servers leave the thoughts in the text; each tag is a piece of its own then."""
        if self._is_in_tags:
            if text == "</think>":
                self._is_in_tags = False
            else:
                self._add(text, TAGGED)
        elif text == "<think>":
            self._is_in_tags = True
        elif text:
            is_begun = self._add(text, "")
            if self._on_text is not None:
                self._on_text(clean(f"\n\n{text}" if is_begun and self._has_text else text))
                self._has_text = True

    def _add(self, words: str, thought_field: str) -> bool:
        """Whether a new part begins with it."""
        self._count(words)
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Pieces) and last.thought_field == thought_field:
            last.pieces.append(words)
            return False
        self._parts.append(_Pieces(thought_field, [words]))
        return True

    def _take_call(self, delta: _CallDelta) -> None:
        call = self._call_for(delta)
        call.call_id = delta.id or call.call_id
        if delta.extra_content:
            call.extra = delta.extra_content
        if delta.function is None:
            return
        name, arguments = delta.function.name, delta.function.arguments
        if name:
            self._count(name)
            call.tool += name
        if isinstance(arguments, dict):
            arguments = _written(arguments)
        if arguments:
            self._count(arguments)
            call.pieces.append(arguments)

    def _call_for(self, delta: _CallDelta) -> _CallPieces:
        """The call that a piece belongs to. Without an index, whatever has a name is a new one."""
        index = delta.index
        if index is None:
            has_name = delta.function is not None and bool(delta.function.name)
            index = len(self._calls) if has_name or not self._calls else max(self._calls)
        call = self._calls.get(index)
        if call is None:
            self._count(CALL_COST)
            call = self._calls[index] = _CallPieces()
            self._parts.append(call)
        return call

    def _count(self, words: str | int) -> None:
        self._room -= words if isinstance(words, int) else len(words)
        if self._room < 0:
            raise ModelRefused(TOO_LONG)


def _chunk_in(body: bytes) -> _Chunk:
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise ModelBusy(MALFORMED) from error
    except (ValueError, RecursionError):
        return _tolerated(body)


def _tolerated(body: bytes) -> _Chunk:
    """Half a character is no JSON to the strict, and comes where a text is cut in pieces."""
    try:
        return msgspec.convert(json.loads(body), _Chunk)
    except (ValueError, RecursionError) as error:
        raise ModelBusy(MALFORMED) from error


def _written(arguments: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(arguments).decode()
    except ValueError as error:  # half a character in it
        raise ModelBusy(MALFORMED) from error


def _text_in(content: str | list[str | _ContentPart]) -> str:
    if isinstance(content, str):
        return content
    texts = (
        part if isinstance(part, str) else part.type == "text" and part.text for part in content
    )
    return "".join(text for text in texts if text)


def _usage_in(usage: object) -> _Usage:
    try:
        return msgspec.convert(usage, _Usage)
    except msgspec.ValidationError:
        return _Usage()


def _call_of(call: _CallPieces) -> CallRequest:
    arguments = clean("".join(call.pieces)) or "{}"
    if not call.tool or not is_object(arguments):
        raise ModelBusy(NO_ARGUMENTS)
    return CallRequest(provider_id=clean(call.call_id), tool=clean(call.tool), arguments=arguments)


def is_object(text: str) -> bool:
    """Whether the text is one JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (ValueError, RecursionError):
        return False
