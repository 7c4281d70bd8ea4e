"""The messages interface of Anthropic: what its streams look like, and what it refuses."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.fakes.model_servers.server import Answer, Received, as_json

MODEL = "claude-test"
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
PING = b'event: ping\ndata: {"type":"ping"}\n\n'

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")


def event(kind: str, **more: Any) -> bytes:
    body = json.dumps({"type": kind, **more}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {body}\n\n".encode()


def begin(tokens_in: int = 11) -> bytes:
    message: dict[str, Any] = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": tokens_in, "output_tokens": 1},
    }
    return event("message_start", message=message)


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[bytes]:
    return [
        event("content_block_start", index=index, content_block=start),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def text(index: int, *pieces: str) -> list[bytes]:
    deltas = ({"type": "text_delta", "text": piece} for piece in pieces)
    return block(index, {"type": "text", "text": ""}, *deltas)


def thinking(index: int, words: str, signature: str) -> list[bytes]:
    return block(
        index,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": words},
        {"type": "signature_delta", "signature": signature},
    )


def call(index: int, call_id: str, name: str, *arguments: str) -> list[bytes]:
    start = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in ("", *arguments))
    return block(index, start, *deltas)


def end(reason: str = "end_turn", tokens_out: int = 7, **more: Any) -> list[bytes]:
    delta = {"stop_reason": reason, "stop_sequence": None, **more}
    return [event("message_delta", delta=delta, usage={"output_tokens": tokens_out}), STOP]


def stream(*pieces: bytes, **more: Any) -> Answer:
    return Answer(pieces=(begin(), PING, *pieces), **more)


def error(status: int, message: str, kind: str = "api_error", **headers: str) -> Answer:
    names = tuple((name.replace("_", "-"), words) for name, words in headers.items())
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_01"}
    return as_json(body, status=status, headers=names)


def complain(received: Received) -> Answer | None:
    """What the interface answers to a request that breaks its rules; None if it keeps them."""
    headers = received.headers
    if received.method != "POST" or received.path.partition("?")[0] != "/v1/messages":
        return error(404, f"{received.path} is not found", "not_found_error")
    if "x-api-key" not in headers and not headers.get("authorization", "").startswith("Bearer "):
        return error(401, "x-api-key header is required", "authentication_error")
    if "anthropic-version" not in headers:
        return error(400, "anthropic-version: header is required", "invalid_request_error")
    offence = next(_offences(received.body), None)
    return error(400, offence, "invalid_request_error") if offence else None


def _offences(body: dict[str, Any]) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or body.get("stream") is not True:
        yield "model: Field required, and these tests want a stream"
    if not isinstance(body.get("max_tokens"), int):
        yield "max_tokens: Field required"
    for tool in body.get("tools", []):
        if tool["input_schema"].get("type") != "object":
            yield f"tools.{tool['name']}.input_schema.type: Field required"
    messages = body.get("messages", [])
    if not messages or messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    if messages and messages[-1]["role"] != "user":
        yield "the conversation must end with a user message"
    yield from _offences_of_messages(messages)


def _offences_of_messages(messages: list[dict[str, Any]]) -> Iterator[str]:
    owed: list[str] = []
    seen: set[str] = set()
    before = ""
    for place, message in enumerate(messages):
        if message["role"] == before:
            yield f"messages.{place}: roles must alternate"
        before = message["role"]
        results = [each["tool_use_id"] for each in _blocks(message, "tool_result")]
        if sorted(results) != sorted(owed):
            yield f"messages.{place}: `tool_use` without a `tool_result` right after it, or reverse"
        kinds = [each["type"] for each in message["content"]]
        if "tool_result" in kinds[len(results) :]:
            yield f"messages.{place}: tool results must come first"
        owed = [each["id"] for each in _blocks(message, "tool_use")]
        if seen & set(owed) or not all(_CALL_ID.fullmatch(each) for each in owed):
            yield f"messages.{place}: `tool_use` ids must be unique, and match a pattern"
        seen |= set(owed)
        texts = [each["text"] for each in _blocks(message, "text")]
        if not message["content"] or not all(each.strip() for each in texts):
            yield f"messages.{place}: text content blocks must contain non-whitespace text"


def _blocks(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each for each in message["content"] if each["type"] == kind]
