"""The responses interface of OpenAI: what its streams look like, and what it refuses."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.fakes.model_servers.openai_form import error
from tests.fakes.model_servers.server import Answer, Received

MODEL = "gpt-test-pro"
SEALED = "reasoning.encrypted_content"
JSON = dict[str, Any]

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FOLLOWS_THOUGHT = ("message", "function_call", "reasoning")


def message(*pieces: str, number: int = 1) -> JSON:
    """A message of the model, done."""
    part = {"type": "output_text", "text": "".join(pieces), "annotations": [], "logprobs": []}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def refusal(words: str) -> JSON:
    return {**message(), "content": [{"type": "refusal", "refusal": words}]}


def call(call_id: str, name: str, *arguments: str) -> JSON:
    return {
        "id": f"fc_{call_id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": "".join(arguments),
    }


def thought(sealed: str = "gAAAA-sealed", number: int = 1) -> JSON:
    return {
        "id": f"rs_{number}",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "I see."}],
        "encrypted_content": sealed,
    }


def response(output: Sequence[JSON], status: str = "completed", **more: Any) -> JSON:
    """The response as a whole, as it stands in the first and the last event."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_794_000_000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": MODEL,
        "output": list(output),
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": False,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
        "metadata": {},
        **more,
    }


def usage(tokens_in: int = 11, tokens_out: int = 7) -> JSON:
    return {
        "input_tokens": tokens_in,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens_in + tokens_out,
    }


def events(*output: JSON, end: JSON | None = None) -> list[bytes]:
    """A whole stream: every item comes in pieces, and the end tells all of it again."""
    told: list[JSON] = [
        {"type": "response.created", "response": response([], "in_progress")},
        {"type": "response.in_progress", "response": response([], "in_progress")},
    ]
    for index, item in enumerate(output):
        told += _events_of(item, index)
    last = end or {"type": "response.completed", "response": response(output, usage=usage())}
    return [_event(each, number) for number, each in enumerate([*told, last])]


def incomplete(reason: str, *output: JSON) -> list[bytes]:
    details = {"incomplete_details": {"reason": reason}, "usage": usage()}
    end = {"type": "response.incomplete", "response": response(output, "incomplete", **details)}
    return events(*output, end=end)


def failed(code: str, words: str, *output: JSON) -> list[bytes]:
    told = {"error": {"code": code, "message": words}}
    return events(
        *output, end={"type": "response.failed", "response": response(output, "failed", **told)}
    )


def _events_of(item: JSON, index: int) -> Iterator[JSON]:
    at = {"item_id": item["id"], "output_index": index}
    begun = {**item, "status": "in_progress"}
    match item:
        case {"type": "message", "content": [part]}:
            yield _added({**begun, "content": []}, index)
            kind = "output_text" if part["type"] == "output_text" else "refusal"
            field = "text" if kind == "output_text" else "refusal"
            place = {**at, "content_index": 0}
            more: JSON = {"logprobs": []} if kind == "output_text" else {}
            yield {
                "type": "response.content_part.added",
                **place,
                "part": {**part, field: ""},
            }
            for piece in _pieces(part[field]):
                yield {"type": f"response.{kind}.delta", **place, "delta": piece, **more}
            yield {"type": f"response.{kind}.done", **place, field: part[field], **more}
            yield {"type": "response.content_part.done", **place, "part": part}
        case {"type": "function_call", "arguments": arguments, "name": name}:
            yield _added({**begun, "arguments": ""}, index)
            kind = "response.function_call_arguments"
            for piece in _pieces(arguments):
                yield {"type": f"{kind}.delta", **at, "delta": piece}
            yield {"type": f"{kind}.done", **at, "arguments": arguments, "name": name}
        case {"type": "reasoning", "summary": [part]}:
            yield _added({**item, "summary": [], "encrypted_content": "gAAAA-part"}, index)
            place = {**at, "summary_index": 0}
            kind = "response.reasoning_summary"
            yield {"type": f"{kind}_part.added", **place, "part": {**part, "text": ""}}
            yield {"type": f"{kind}_text.delta", **place, "delta": part["text"]}
            yield {"type": f"{kind}_text.done", **place, "text": part["text"]}
            yield {"type": f"{kind}_part.done", **place, "part": part}
        case _:
            raise AssertionError(f"no stream has {item['type']}")
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _added(item: JSON, index: int) -> JSON:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def _pieces(text: str) -> list[str]:
    return [text[at : at + 9] for at in range(0, len(text), 9)]


def _event(body: JSON, number: int) -> bytes:
    told = {"type": body["type"], "sequence_number": number, **body}
    line = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return f"event: {body['type']}\ndata: {line}\n\n".encode()


def complain(received: Received) -> Answer | None:
    """What the interface answers to a request that breaks its rules; None if it keeps them."""
    if (received.method, received.path) != ("POST", "/v1/responses"):
        return error(404, f"Invalid URL ({received.method} {received.path})")
    if not received.headers.get("authorization", "").startswith("Bearer "):
        return error(401, "You didn't provide an API key.")
    offence = next(_offences(received.body), None)
    return error(400, offence) if offence else None


def _offences(body: JSON) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or body.get("stream") is not True:
        yield "you must provide a model parameter, and these tests a stream"
    for name in body.keys() & {"messages", "stream_options", "max_tokens", "functions"}:
        yield f"Unknown parameter: '{name}'."
    if body.get("store") is not False:
        yield "these tests keep nothing at the provider"
    for tool in body.get("tools", []):
        if tool.get("type") != "function" or not _TOOL_NAME.fullmatch(tool.get("name", "")):
            yield f"Invalid 'tools.name': {tool.get('name')}"
        elif tool["parameters"].get("type") != "object":
            yield f"Invalid schema for function '{tool['name']}'"
    told = body.get("input", [])
    items = [{"role": "user", "content": told}] if isinstance(told, str) else told
    yield from _offences_of_items(items, body.get("include", []))


def _offences_of_items(items: list[JSON], included: list[str]) -> Iterator[str]:
    if not items:
        yield "Missing required parameter: 'input'."
    owed: list[str] = []
    for place, item in enumerate(items):
        match item:
            case {"type": "reasoning", "id": str(), "summary": list()}:
                behind = items[place + 1] if place + 1 < len(items) else {}
                if behind.get("type") not in _FOLLOWS_THOUGHT:
                    yield (
                        f"Item '{item['id']}' of type 'reasoning' was provided without its "
                        "required following item."
                    )
                if not item.get("encrypted_content") or SEALED not in included:
                    yield f"Item with id '{item['id']}' not found. Items are not persisted."
            case {"type": "function_call", "call_id": call_id, "name": str()}:
                json.loads(item["arguments"])
                owed.append(call_id)
                if len(owed) != len(set(owed)):
                    yield f"duplicate call_id {call_id}"
            case {"type": "function_call_output", "call_id": call_id, "output": str(output)}:
                if call_id not in owed:
                    yield f"No tool call found for function call output with call_id {call_id}."
                if not output.strip():
                    yield "blank output"
                owed = [each for each in owed if each != call_id]
            case {"role": "user" | "assistant", "content": content} if content:
                if owed:
                    yield f"No tool output found for function call {owed[0]}."
                if item["role"] == "user" and not str(content).strip():
                    yield f"blank content in input[{place}]"
            case _:
                yield f"Invalid value: input[{place}]"
    if owed:
        yield f"No tool output found for function call {owed[0]}."
