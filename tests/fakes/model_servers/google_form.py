"""The Gemini interface of Google, as far as the adapter needs it: streams of server-sent events."""

import json
from typing import Any

from tests.fakes.model_servers.server import Answer, Received, as_json

MODEL = "gemini-test"


def event(parts: list[dict[str, Any]], finish: str | None = None, tokens_out: int = 7) -> bytes:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 11, "candidatesTokenCount": tokens_out, "totalTokenCount": 18}
    body = {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": MODEL,
        "responseId": "r1",
    }
    line = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return f"data: {line}\r\n\r\n".encode()


def stream(*pieces: bytes, **more: Any) -> Answer:
    return Answer(pieces=pieces, **more)


def error(status: int, message: str, kind: str) -> Answer:
    return as_json({"error": {"code": status, "message": message, "status": kind}}, status=status)


def complain(received: Received) -> Answer | None:
    """What the interface answers to a request that breaks its rules; None if it keeps them."""
    if not received.path.endswith(":streamGenerateContent?alt=sse"):
        return error(404, f"{received.path} is not found", "NOT_FOUND")
    if "x-goog-api-key" not in received.headers:
        return error(403, "Method doesn't allow unregistered callers.", "PERMISSION_DENIED")
    roles = [content["role"] for content in received.body["contents"]]
    expected = ["user" if place % 2 == 0 else "model" for place in range(len(roles))]
    if roles != expected or roles[-1] != "user":
        return error(400, "Please ensure that roles alternate.", "INVALID_ARGUMENT")
    return None
