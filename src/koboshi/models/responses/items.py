"""The items of a reply, kept where text and calls alone would lose something.

Nothing is kept at the provider, so what a model thought has to be sent back with the next request,
as it came: it is sealed. Where it is stored, it has the outer form of the model library, so that
other providers can tell that it is not theirs.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from koboshi.domain.transcript import Call
from koboshi.models.talk import ReplyOrigin

# An item belongs to the provider; what is not known of it goes back unchanged.
Item: TypeAlias = dict[str, Any]

KEPT = frozenset({"reasoning", "message", "function_call"})


class _Details(msgspec.Struct):
    output: list[Item] = []


class _Raw(msgspec.Struct):
    parts: list[Any]
    kind: Literal["response"]
    model_name: str | None = None
    provider_name: str | None = None
    provider_url: str | None = None
    provider_details: _Details | None = None


_decoder = msgspec.json.Decoder(list[_Raw])


def is_sealed(item: Item) -> bool:
    """Whether the item holds thoughts that only the provider can read."""
    return item.get("type") == "reasoning" and bool(item.get("encrypted_content"))


def write_raw(output: Sequence[Item], origin: ReplyOrigin, model: str) -> str:
    """The reply to be stored; nothing if text and calls alone tell all of it. A thought that is
    neither sealed nor in clear cannot be sent back, so it is not kept."""
    kept = [item for item in output if item.get("type") in KEPT and not _is_empty_thought(item)]
    if not any(item.get("type") == "reasoning" for item in kept):
        return ""
    raw = _Raw(
        parts=[],
        kind="response",
        model_name=model,
        provider_name=origin.system,
        provider_url=origin.url,
        provider_details=_Details(output=kept),
    )
    try:
        return msgspec.json.encode([raw]).decode()
    except ValueError:  # half a character in it: it cannot be stored, so it is left out
        return ""


def read_raw(raw: str, origin: ReplyOrigin, model: str, calls: Sequence[Call]) -> list[Item] | None:
    """The items, if the reply was made by this model at `origin` and holds just the calls that were
    stored: those count. None if it is another one's, or nothing that this version can read."""
    if not raw:
        return None
    try:
        (reply,) = _decoder.decode(raw)
    except (ValueError, RecursionError):
        return None
    made_by = (reply.provider_name, reply.provider_url, reply.model_name)
    if made_by != (origin.system, origin.url, model) or reply.provider_details is None:
        return None
    output = reply.provider_details.output
    made = [item.get("name") for item in output if item.get("type") == "function_call"]
    return output if made == [call.tool for call in calls] else None


def _is_empty_thought(item: Item) -> bool:
    is_thought = item.get("type") == "reasoning"
    return is_thought and not item.get("encrypted_content") and not item.get("content")
