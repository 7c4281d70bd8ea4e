"""The body of a request, made directly from our steps."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec

from koboshi.domain.transcript import Call, Step
from koboshi.models.chat.raw import TAGGED, CalledPart, Part, Text, Thought, read_raw
from koboshi.models.talk import (
    ModelSaid,
    ModelsSide,
    ReplyOrigin,
    UsersSide,
    picture_address,
    record_of,
    talk_of,
)
from koboshi.ports.model import Request, ToolSpec

_MAKERS = re.compile(r"https?://[^/]*\.openai(\.azure)?\.com[:/]", re.IGNORECASE)
_TOOL_SETS_MAX = 16
"""Kept as bytes: a gateway has one set, and the tools of servers that come and go make others."""


class _Written(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class _Address(msgspec.Struct):
    url: str


class _Seen(msgspec.Struct, tag_field="type", tag="image_url"):
    image_url: _Address


class _Words(msgspec.Struct):
    role: Literal["system", "user"]
    content: str | list[_Written | _Seen]


class _Found(msgspec.Struct, tag_field="role", tag="tool"):
    tool_call_id: str
    content: str


class _Function(msgspec.Struct):
    name: str
    arguments: str


class _Call(msgspec.Struct, omit_defaults=True, tag_field="type", tag="function"):
    id: str
    function: _Function
    extra_content: Any = None


class _Spoken(msgspec.Struct, omit_defaults=True, tag_field="role", tag="assistant"):
    content: str | None
    tool_calls: list[_Call] = []
    reasoning: str = ""
    reasoning_content: str = ""


class _Tool(msgspec.Struct):
    name: str
    description: str
    parameters: msgspec.Raw


class _Offer(msgspec.Struct, tag_field="type", tag="function"):
    function: _Tool


class _StreamOptions(msgspec.Struct):
    include_usage: bool = True


class _Body(msgspec.Struct, omit_defaults=True):
    model: str
    stream: bool
    messages: list[_Words | _Found | _Spoken]
    stream_options: _StreamOptions
    tool_choice: str = ""
    tools: msgspec.Raw = msgspec.Raw()
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


_encoder = msgspec.json.Encoder()


def body_of(request: Request, model: str, origin: ReplyOrigin) -> bytes:
    """What a model at `origin` is sent."""
    messages: list[_Words | _Found | _Spoken] = []
    if system := request.system.strip():
        messages.append(_Words("system", system))
    if request.wants_summary:
        messages.append(_Words("user", record_of(request.steps)))
    else:
        _add_talk(messages, request.steps, origin)
    body = _Body(model, True, messages, _StreamOptions())
    if _is_makers(origin.url):
        body.max_completion_tokens = request.tokens_out_max
    else:
        body.max_tokens = request.tokens_out_max
    if request.tools:
        body.tool_choice = "auto"
        body.tools = _tools_of(request.tools)
    return _encoder.encode(body)


def _is_makers(url: str) -> bool:
    """Whether the maker of the interface answers there: its newer models refuse the old name of the
    bound, and many other servers know no other."""
    return _MAKERS.match(url) is not None


@lru_cache(_TOOL_SETS_MAX)
def _tools_of(specs: tuple[ToolSpec, ...]) -> msgspec.Raw:
    """The schemas are sent as they are written; the runtime checks the arguments."""
    offers = [
        _Offer(_Tool(spec.name, spec.description, msgspec.Raw(spec.parameters.encode())))
        for spec in specs
    ]
    return msgspec.Raw(_encoder.encode(offers))


def _add_talk(
    messages: list[_Words | _Found | _Spoken], steps: Sequence[Step], origin: ReplyOrigin
) -> None:
    for side in talk_of(steps):
        match side:
            case UsersSide(returned=returned, text=text, pictures=pictures):
                messages.extend(_Found(each.wire_id, each.text) for each in returned)
                if pictures:
                    seen = [_Seen(_Address(picture_address(each))) for each in pictures]
                    messages.append(_Words("user", [_Written(text), *seen]))
                elif text:
                    messages.append(_Words("user", text))
            case ModelsSide(said=said):
                messages.append(_spoken(said, origin))


def _spoken(all_said: Sequence[ModelSaid], origin: ReplyOrigin) -> _Spoken:
    """All of it in one message: the interface knows one text and one list of calls."""
    texts: list[str] = []
    calls: list[_Call] = []
    thoughts: dict[str, list[str]] = {"reasoning": [], "reasoning_content": []}
    for said in all_said:
        parts = _parts_of(said, origin)
        extras = [part.extra for part in parts if isinstance(part, CalledPart)]
        for part in parts:
            match part:
                case Text(content=text) if text.strip():
                    texts.append(text)
                case Thought(content=text, id=str() as where) if where in thoughts:
                    thoughts[where].append(text)
                case Thought(content=text, id=where) if where == TAGGED:
                    texts.append(f"<think>\n{text}\n</think>")
                case _:
                    pass
        for (call, wire_id), extra in zip(said.calls, extras, strict=True):
            calls.append(_Call(wire_id, _Function(call.tool, compact(call)), extra))
    return _Spoken(
        content="\n\n".join(texts) or None,
        tool_calls=calls,
        reasoning="\n\n".join(thoughts["reasoning"]),
        reasoning_content="\n\n".join(thoughts["reasoning_content"]),
    )


def _parts_of(said: ModelSaid, origin: ReplyOrigin) -> list[Part]:
    """As the provider made it if it is the same, else rebuilt."""
    reply = said.reply
    if reply is None:
        return [Text(said.text)]
    return read_raw(reply.raw, origin, reply.calls) or [
        Text(said.text),
        *(CalledPart(call.tool) for call in reply.calls),
    ]


def compact(call: Call) -> str:
    """Without the spaces between: the same bytes in every request."""
    try:
        return msgspec.json.format(call.arguments, indent=-1)
    except msgspec.DecodeError:
        # Nothing that is no object is ever stored; a server would refuse it for ever.
        return msgspec.json.encode({"INVALID_JSON": call.arguments}).decode()
