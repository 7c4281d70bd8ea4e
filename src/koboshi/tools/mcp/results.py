"""What a server answers to a call, as one bounded result for the model."""

from collections.abc import Mapping
from typing import Any

import msgspec

from koboshi.domain.text import head_and_tail, plain
from koboshi.tools.declared import result_text

RESULT_CHARS_MAX = 30_000
_PARTS_MAX = 200
_WORDS_MAX = 500


def answer_text(result: object) -> str:
    """The result of a call: `status` is `ok` or `error`, as the server says.

    Text parts are joined; of the others the model is told what they are. Structured content counts
    where there is no text: servers repeat it there.
    """
    said = result if isinstance(result, dict) else {}
    content = said.get("content")
    parts = content if isinstance(content, list) else []
    output = "\n".join(part for raw in parts[:_PARTS_MAX] if (part := _part(raw)))
    if not output and said.get("structuredContent") is not None:
        output = _bounded(_as_json(said["structuredContent"]))
    fields: dict[str, object] = {"output": _bounded(output)}
    if len(parts) > _PARTS_MAX:
        fields["note"] = f"{len(parts) - _PARTS_MAX} more parts left out"
    return result_text("error" if said.get("isError") is True else "ok", **fields)


def harmless(words: str, chars_max: int = _WORDS_MAX) -> str:
    """Foreign words as they may stand in a sentence: plain, in one line, not endless."""
    line = " ".join(plain(_encodable(words[: 4 * chars_max])).split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1]}…"


def _part(raw: object) -> str:
    match raw:
        case {"type": "text", "text": str() as text}:
            return _bounded(text)
        case {"type": "image" | "audio" as kind, "data": str() as content, **rest}:
            return f"[{kind}, {_media(rest)}, {_size(content)}]"
        case {"type": "resource", "resource": dict() as resource}:
            return _resource(resource)
        case {"type": "resource_link", "uri": str() as uri, **rest}:
            name = rest.get("name")
            named = f" {harmless(name, 100)}" if isinstance(name, str) else ""
            return f"[link{named}: {harmless(uri)}]"
        case {"type": str() as kind}:
            return f"[{harmless(kind, 40)}, not shown]"
        case _:
            return "[a part that cannot be read]"


def _resource(resource: dict[str, object]) -> str:
    uri = resource.get("uri")
    where = harmless(uri) if isinstance(uri, str) else "without an address"
    match resource:
        case {"text": str() as text}:
            return f"[resource {where}]\n{_bounded(text)}"
        case {"blob": str() as content}:
            return f"[resource {where}, {_media(resource)}, {_size(content)}]"
        case _:
            return f"[resource {where}]"


def _media(raw: Mapping[Any, object]) -> str:
    kind = raw.get("mimeType")
    return harmless(kind, 80) if isinstance(kind, str) and kind else "of unknown type"


def _size(base64: str) -> str:
    return f"{len(base64) * 3 // 4} bytes"


def _bounded(text: str) -> str:
    # Shortened before it is cleaned as well: that is what takes time.
    text = _encodable(head_and_tail(text, 4 * RESULT_CHARS_MAX))
    return head_and_tail(plain(text), RESULT_CHARS_MAX)


def _encodable(text: str) -> str:
    """Half a surrogate pair is legal in JSON and nowhere else."""
    return text.encode("utf-8", "replace").decode()


def _as_json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return "[structured content that cannot be shown]"
