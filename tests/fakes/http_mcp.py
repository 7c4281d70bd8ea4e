"""An MCP server over HTTP, in the test's own event loop, that answers calls as it is told to.

It speaks the older protocol, with sessions, and just as much of HTTP as that takes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: tuple[str, ...] = ()
    breaks: bool = False
    """The connection is closed in the middle of it."""


@dataclass(slots=True, kw_only=True)
class FakeHttpServer:
    on_call: Callable[[JSON], Response]
    port: int = 0
    calls: list[JSON] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    lives: int = 1
    refuses_with: int = 404
    """How it answers a session of an earlier life."""

    def restart(self) -> None:
        """Forget every session."""
        self.lives += 1

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = head.partition("content-length: ")[2].partition("\r\n")[0]
                body = await reader.readexactly(int(length or 0))
                session = head.partition("mcp-session-id: ")[2].partition("\r\n")[0]
                response = self.answer(head.partition(" ")[0], body, session)
                writer.write(encoded(response))
                await writer.drain()
                if response.breaks:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    def answer(self, verb: str, body: bytes, session: str) -> Response:
        if verb != "post":
            return Response(status=405)
        message: JSON = json.loads(body)
        method = message["method"]
        self.methods.append(method)
        if session not in ("", f"s{self.lives}"):
            return Response(status=self.refuses_with, kind="text/plain", body=b"no such session")
        match method:
            case "initialize":
                result = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fake", "version": "1"},
                }
                return answer_to(message, result, f"Mcp-Session-Id: s{self.lives}")
            case "tools/list":
                tool = {"name": "act", "inputSchema": {"type": "object"}}
                return answer_to(message, {"tools": [tool]})
            case "tools/call":
                self.calls.append(message)
                return self.on_call(message)
            case _ if "id" in message:
                return Response(status=400)
            case _:
                return Response(status=202)


@asynccontextmanager
async def serving(on_call: Callable[[JSON], Response]) -> AsyncIterator[FakeHttpServer]:
    fake = FakeHttpServer(on_call=on_call)
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0, limit=2**20)
    fake.port = server.sockets[0].getsockname()[1]
    try:
        yield fake
    finally:
        server.close()


def answer_to(message: JSON, result: JSON, *headers: str) -> Response:
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
    return Response(body=body.encode(), headers=headers)


def error_to(message: JSON, code: int, words: str, status: int = 200) -> Response:
    error = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": words}}
    return Response(status=status, body=json.dumps(error).encode())


def encoded(response: Response) -> bytes:
    length = len(response.body) + (1_000 if response.breaks else 0)
    lines = [
        f"HTTP/1.1 {response.status} Whatever",
        f"Content-Type: {response.kind}",
        f"Content-Length: {length}",
        *response.headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + response.body
