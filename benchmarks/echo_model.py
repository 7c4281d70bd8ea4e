"""An OpenAI-compatible model that takes no time: it says what it was told last."""

import asyncio
import json
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n"
    b"Connection: keep-alive\r\n\r\n"
)
_CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1_794_000_000, "model": "echo"}


@asynccontextmanager
async def echoing() -> AsyncIterator[str]:
    """The address of such a model."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.close()


async def _serve(reader: StreamReader, writer: StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = _answer(json.loads(await reader.readexactly(size)))
            writer.write(_HEAD % len(body) + body)
    except (IncompleteReadError, ConnectionError, asyncio.CancelledError):
        pass  # the client is gone
    finally:
        writer.close()


def _answer(asked: dict[str, object]) -> bytes:
    messages = asked["messages"]
    assert isinstance(messages, list)
    said = messages[-1]["content"]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    events = [
        _event({"role": "assistant", "content": said}, None),
        _event({}, "stop"),
        json.dumps({**_CHUNK, "choices": [], "usage": usage}),
        "[DONE]",
    ]
    return "".join(f"data: {event}\n\n" for event in events).encode()


def _event(delta: dict[str, object], finish: str | None) -> str:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return json.dumps({**_CHUNK, "choices": choices})
