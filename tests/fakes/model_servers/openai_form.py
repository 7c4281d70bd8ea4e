"""The chat-completions interface of OpenAI: what its streams look like, and what it refuses."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.fakes.model_servers.server import Answer, Received, as_json

MODEL = "gpt-test"
DONE = b"data: [DONE]\n\n"

_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    """One event of a stream."""
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_794_000_000,
        "model": MODEL,
        "choices": choices,
    }
    return event(body | more)


def event(body: object) -> bytes:
    line = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return f"data: {line}\n\n".encode()


def text(*pieces: str) -> list[bytes]:
    first = chunk({"role": "assistant", "content": ""})
    return [first, *(chunk({"content": piece}) for piece in pieces)]


def call(index: int, call_id: str, name: str, *arguments: str) -> list[bytes]:
    begin = {"index": index, "id": call_id, "type": "function"}
    function = {"name": name, "arguments": ""}
    return [
        chunk({"tool_calls": [{**begin, "function": function}]}),
        *(
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in arguments
        ),
    ]


def end(finish: str = "stop", tokens_in: int = 11, tokens_out: int = 7) -> list[bytes]:
    usage = {
        "prompt_tokens": tokens_in,
        "completion_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
    }
    return [chunk({}, finish), chunk(usage=usage, choices=[]), DONE]


def stream(*pieces: bytes, **more: Any) -> Answer:
    return Answer(pieces=pieces, **more)


def error(status: int, message: str, code: str | None = None, **headers: str) -> Answer:
    names = tuple((name.replace("_", "-"), words) for name, words in headers.items())
    body = {"message": message, "type": "some_error", "param": None, "code": code}
    return as_json({"error": body}, status=status, headers=names)


def complain(received: Received) -> Answer | None:
    """What the interface answers to a request that breaks its rules; None if it keeps them.

    It is stricter than OpenAI where servers that imitate it are: no two messages of the same side
    in a row, no blank texts.
    """
    if (received.method, received.path) != ("POST", "/v1/chat/completions"):
        return error(404, f"Invalid URL ({received.method} {received.path})")
    if not received.headers.get("authorization", "").startswith("Bearer "):
        return error(401, "You didn't provide an API key.")
    offence = next(_offences(received.body), None)
    return error(400, offence) if offence else None


def _offences(body: dict[str, Any]) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or body.get("stream") is not True:
        yield "you must provide a model parameter, and these tests a stream"
    if body.get("stream_options") != {"include_usage": True}:
        yield "the usage was not asked for"
    for tool in body.get("tools", []):
        function = tool["function"]
        if not _TOOL_NAME.fullmatch(function["name"]):
            yield f"Invalid 'tools.function.name': {function['name']}"
        if function["parameters"].get("type") != "object":
            yield f"Invalid schema for function '{function['name']}'"
    yield from _offences_of_messages(body.get("messages", []))


def _offences_of_parts(role: str, parts: list[dict[str, Any]]) -> Iterator[str]:
    if role != "user":
        yield f"a message of the role '{role}' has no parts"
    for part in parts:
        match part:
            case {"type": "text", "text": str() as text} if text.strip():
                pass
            case {"type": "image_url", "image_url": {"url": str() as url}} if _PICTURE.match(url):
                pass
            case _:
                yield f"Invalid content part: {part.get('type')}"


def _offences_of_messages(messages: list[dict[str, Any]]) -> Iterator[str]:
    owed: list[str] = []
    before = ""
    for place, message in enumerate(messages):
        role, content = message["role"], message.get("content")
        if role == "tool":
            if message["tool_call_id"] not in owed:
                yield "messages with role 'tool' must follow a message with their 'tool_calls'"
            owed = [each for each in owed if each != message["tool_call_id"]]
        elif owed:
            yield f"no tool message responds to these tool_call_ids: {', '.join(owed)}"
        if role == before and role in ("user", "assistant"):
            yield "conversation roles must alternate"
        if role in ("system", "developer") and place:
            yield "a system message must come first"
        calls = message.get("tool_calls", [])
        if isinstance(content, list):
            yield from _offences_of_parts(role, content)
        elif not (content.strip() if content else calls):
            yield f"blank content in messages[{place}]"
        owed += [each["id"] for each in calls]
        if len(owed) != len(set(owed)):
            yield "duplicate tool_call_id"
        for each in calls:
            json.loads(each["function"]["arguments"])
        before = role
    if owed or before not in ("user", "tool"):
        yield "the last message must be from the user or a tool"
