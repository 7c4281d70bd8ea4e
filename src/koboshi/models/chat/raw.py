"""A reply as its provider made it, kept where text and calls alone would lose something.

It has the form of the model library, which was stored before the interface was spoken without it:
what was stored then is still understood, and other providers can tell that it is not theirs.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from koboshi.domain.transcript import Call
from koboshi.models.talk import ReplyOrigin

TAGGED = "content"
"""The field of a thought that came between tags in the text."""


class Thought(msgspec.Struct, tag_field="part_kind", tag="thinking"):
    """What the model thought, and in which field of the stream that came."""

    content: str
    id: str | None = None
    provider_name: str | None = None


class Text(msgspec.Struct, tag_field="part_kind", tag="text"):
    content: str


class CalledPart(msgspec.Struct, tag_field="part_kind", tag="tool-call"):
    """A call. `provider_details` holds what has to be sent back with it, unchanged."""

    tool_name: str
    args: str | dict[str, Any] | None = None
    tool_call_id: str = ""
    provider_name: str | None = None
    provider_details: dict[str, Any] | None = None

    @property
    def extra(self) -> object:
        return (self.provider_details or {}).get("extra_content")


Part: TypeAlias = Thought | Text | CalledPart


class _Raw(msgspec.Struct, omit_defaults=True):
    parts: list[Part]
    kind: Literal["response"]
    provider_name: str | None = None
    provider_url: str | None = None


_decoder = msgspec.json.Decoder(list[_Raw])


def write_raw(parts: Sequence[Part], origin: ReplyOrigin) -> str:
    """The reply to be stored; nothing if text and calls alone tell all of it."""
    if not any(isinstance(part, Thought) or _has_extra(part) for part in parts):
        return ""
    raw = _Raw(
        parts=list(parts), kind="response", provider_name=origin.system, provider_url=origin.url
    )
    try:
        return msgspec.json.encode([raw]).decode()
    except ValueError:  # half a character in a thought: it cannot be stored, so it is left out
        return ""


def read_raw(raw: str, origin: ReplyOrigin, calls: Sequence[Call]) -> list[Part] | None:
    """The parts, if the reply was made at `origin` and holds just the calls that were stored: those
    count. None if another origin made it, or this version cannot read it."""
    if not raw:
        return None
    try:
        (reply,) = _decoder.decode(raw)
    except (ValueError, RecursionError):
        return None
    if (reply.provider_name, reply.provider_url) != (origin.system, origin.url):
        return None
    made = [part.tool_name for part in reply.parts if isinstance(part, CalledPart)]
    return reply.parts if made == [call.tool for call in calls] else None


def _has_extra(part: Part) -> bool:
    return isinstance(part, CalledPart) and part.extra is not None
