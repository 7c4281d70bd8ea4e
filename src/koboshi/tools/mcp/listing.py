"""The tools that a server lists, made harmless and bounded: everything in a list is
foreign text, and the model reads it."""

from dataclasses import dataclass

import msgspec

from koboshi.domain.marks import unmarked
from koboshi.domain.phrases import excerpt
from koboshi.domain.text import plain
from koboshi.tools.mcp.hints import Hints

TOOLS_MAX = 128
TOOL_NAME_CHARS_MAX = 256
DESCRIPTION_CHARS_MAX = 4_000
SCHEMA_TEXT_CHARS_MAX = 2_000
SCHEMA_BYTES_MAX = 64_000
SCHEMA_DEPTH_MAX = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    name: str
    """As the server calls it."""
    description: str
    parameters: str
    """A JSON schema, as text."""
    required: frozenset[str]
    known: frozenset[str] | None
    """The arguments there are; None if there may be others."""
    hints: Hints


class Unlisted(Exception):
    """A tool that cannot be offered to the model, and why."""


def listed_tool(raw: object) -> ListedTool:
    """A tool out of a server's list. Raises Unlisted if it cannot be used."""
    if not isinstance(raw, dict):
        raise Unlisted("an entry of the list is no tool")
    name = raw.get("name")
    if not isinstance(name, str) or not name or len(name) > TOOL_NAME_CHARS_MAX or _is_half(name):
        raise Unlisted("a tool has no usable name")
    match raw.get("execution"):
        case {"taskSupport": "required"}:
            # A call of it is answered with a task to be asked after, which we do not speak.
            raise Unlisted(f"the tool {shown_name(name)} can only be called as a task")
        case _:
            pass
    schema = _schema(raw.get("inputSchema"))
    properties = schema.get("properties")
    is_closed = schema.get("additionalProperties") is False
    return ListedTool(
        name=name,
        description=_description(raw, name),
        parameters=_encoded(schema),
        required=_names(schema.get("required")),
        known=frozenset(properties) if is_closed and isinstance(properties, dict) else None,
        hints=_hints(raw.get("annotations")),
    )


def _description(raw: dict[str, object], name: str) -> str:
    for said in (raw.get("description"), raw.get("title"), name):
        # Cut before it is cleaned, too: a long text is not worth the time.
        words = plain(said[: 2 * DESCRIPTION_CHARS_MAX]).strip() if isinstance(said, str) else ""
        if words and not _is_half(words):
            return _bounded(unmarked(words), DESCRIPTION_CHARS_MAX)
    return "(no description)"


def _is_half(text: str) -> bool:
    """Whether half a surrogate pair is in it: legal in JSON, and nowhere else. What holds one can
    not be sent to a model, and would take all other tools along."""
    return any("\ud800" <= char <= "\udfff" for char in text)


def _hints(raw: object) -> Hints:
    said = raw if isinstance(raw, dict) else {}
    return Hints(
        is_read_only=said.get("readOnlyHint") is True,
        is_idempotent=said.get("idempotentHint") is True,
        is_destructive=said.get("destructiveHint") is True,
    )


def _schema(raw: object) -> dict[str, object]:
    if not isinstance(raw, dict):
        raise Unlisted("the tool has no schema")
    schema = _tamed(raw, SCHEMA_DEPTH_MAX)
    assert isinstance(schema, dict)
    if schema.setdefault("type", "object") != "object":
        raise Unlisted("the schema of the tool is not that of an object")
    schema.setdefault("properties", {})
    return schema


def _tamed(value: object, depth: int) -> object:
    """`value` with every text in it made plain. Names must be plain already: they are part of what
    the server understands."""
    if depth == 0:
        raise Unlisted("the schema of the tool is nested too deeply")
    match value:
        case str():
            words = unmarked(plain(value[: 2 * SCHEMA_TEXT_CHARS_MAX]))
            return _bounded(words, SCHEMA_TEXT_CHARS_MAX)
        case list():
            return [_tamed(each, depth - 1) for each in value]
        case dict():
            if not all(isinstance(name, str) and plain(name) == name for name in value):
                raise Unlisted("the schema of the tool has names with hidden characters")
            return {name: _tamed(each, depth - 1) for name, each in value.items()}
        case _:
            return value


def _encoded(schema: dict[str, object]) -> str:
    try:
        content = msgspec.json.encode(schema)
        text = content.decode()
    except (TypeError, ValueError, OverflowError) as error:
        raise Unlisted(f"the schema of the tool cannot be passed on: {error}") from None
    if len(content) > SCHEMA_BYTES_MAX:
        raise Unlisted(f"the schema of the tool has more than {SCHEMA_BYTES_MAX} bytes")
    return text


def _names(raw: object) -> frozenset[str]:
    return (
        frozenset(name for name in raw if isinstance(name, str))
        if isinstance(raw, list)
        else (frozenset())
    )


def _bounded(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def shown_name(name: str) -> str:
    """A server's name for a tool as it may stand in a sentence or a log line."""
    return excerpt(plain(name), 80)
