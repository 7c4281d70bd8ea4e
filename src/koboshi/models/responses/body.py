"""The body of a request for a response, made directly from our steps."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from koboshi.domain.transcript import Step
from koboshi.models.chat.body import compact
from koboshi.models.responses.items import Item, is_sealed, read_raw
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

SEALED = "reasoning.encrypted_content"
"""What is asked for beside the reply: nothing is stored there, so thoughts come sealed."""
_TOOL_SETS_MAX = 16


class _Written(msgspec.Struct, tag_field="type", tag="input_text"):
    text: str


class _Seen(msgspec.Struct, tag_field="type", tag="input_image"):
    image_url: str


class _Words(msgspec.Struct):
    role: Literal["user", "assistant"]
    content: str | list[_Written | _Seen]


class _Called(msgspec.Struct, tag_field="type", tag="function_call"):
    call_id: str
    name: str
    arguments: str


class _Found(msgspec.Struct, tag_field="type", tag="function_call_output"):
    call_id: str
    output: str


class _Offer(msgspec.Struct, tag_field="type", tag="function"):
    name: str
    description: str
    parameters: msgspec.Raw
    strict: bool = False


class _Body(msgspec.Struct, omit_defaults=True):
    model: str
    stream: bool
    input: "list[_Words | _Called | _Found | Item]"
    store: bool | None = None
    instructions: str = ""
    include: list[str] = []
    tool_choice: str = ""
    tools: msgspec.Raw = msgspec.Raw()
    max_output_tokens: int | None = None


_encoder = msgspec.json.Encoder()


def body_of(request: Request, model: str, origin: ReplyOrigin, *, is_sealing: bool) -> bytes:
    """What `model` at `origin` is sent. Without `is_sealing`, no thoughts go to and fro."""
    if request.wants_summary:
        said: list[_Words | _Called | _Found | Item] = [_Words("user", record_of(request.steps))]
    else:
        said = list(_items_of(request.steps, model, origin, is_sealing=is_sealing))
    body = _Body(model, True, said, store=False, instructions=request.system.strip())
    body.max_output_tokens = request.tokens_out_max
    if is_sealing:
        body.include = [SEALED]
    if request.tools:
        body.tool_choice = "auto"
        body.tools = _tools_of(request.tools)
    return _encoder.encode(body)


@lru_cache(_TOOL_SETS_MAX)
def _tools_of(specs: tuple[ToolSpec, ...]) -> msgspec.Raw:
    """The schemas are sent as they are written; the runtime checks the arguments."""
    offers = [
        _Offer(spec.name, spec.description, msgspec.Raw(spec.parameters.encode())) for spec in specs
    ]
    return msgspec.Raw(_encoder.encode(offers))


def _items_of(
    steps: Sequence[Step], model: str, origin: ReplyOrigin, *, is_sealing: bool
) -> Iterator[_Words | _Called | _Found | Item]:
    for side in talk_of(steps):
        match side:
            case UsersSide(returned=returned, text=text, pictures=pictures):
                yield from (_Found(each.wire_id, each.text) for each in returned)
                if pictures:
                    seen = [_Seen(picture_address(each)) for each in pictures]
                    yield _Words("user", [_Written(text), *seen])
                elif text:
                    yield _Words("user", text)
            case ModelsSide(said=all_said):
                for said in all_said:
                    yield from _said(said, model, origin, is_sealing=is_sealing)


def _said(
    said: ModelSaid, model: str, origin: ReplyOrigin, *, is_sealing: bool
) -> Iterator[_Words | _Called | Item]:
    """As the provider made it if it is the same, else rebuilt."""
    reply = said.reply
    items = None if reply is None else read_raw(reply.raw, origin, model, reply.calls)
    if items is not None and (is_sealing or not any(map(is_sealed, items))):
        wire_ids = iter(said.wire_ids)
        for item in items:
            is_call = item.get("type") == "function_call"
            yield {**item, "call_id": next(wire_ids)} if is_call else item
        return
    if said.text.strip():
        yield _Words("assistant", said.text)
    for call, wire_id in said.calls:
        yield _Called(wire_id, call.tool, compact(call))
