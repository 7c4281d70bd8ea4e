"""A real MCP server that counts in a file how often its tools were executed.

    python tests/fakes/counting_mcp.py COUNTFILE [--slow SECONDS]              over stdio
    python tests/fakes/counting_mcp.py COUNTFILE [--slow SECONDS] --http PORT  over HTTP, at /mcp

Each execution is one line in COUNTFILE (`<tool> <pid> <note>`), on disk before the tool does
anything else. With `--token`, HTTP requests need it as their bearer token.
"""

import argparse
import os
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from starlette.responses import Response


def build(count_file: Path, slow_s: float) -> MCPServer:
    server = MCPServer("counting")

    def note_execution(tool: str, note: str) -> int:
        with count_file.open("a", encoding="utf-8") as file:
            file.write(f"{tool} {os.getpid()} {note}\n")
            file.flush()
            os.fsync(file.fileno())
        return len(count_file.read_text(encoding="utf-8").splitlines())

    @server.tool(structured_output=False)
    async def count(note: str = "") -> str:
        """Count one execution; with --slow, take that long over it."""
        number = note_execution("count", note)
        await anyio.sleep(slow_s)
        return f"executed {number}"

    @server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
    def look() -> str:
        """Say how often something was executed."""
        note_execution("look", "")
        return "looked"

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True), structured_output=False)
    async def put(note: str) -> str:
        """Put something; again is the same."""
        note_execution("put", note)
        await anyio.sleep(slow_s)
        return "put"

    @server.tool(annotations=ToolAnnotations(destructive_hint=True), structured_output=False)
    def wipe() -> str:
        """Take everything away."""
        note_execution("wipe", "")
        return "wiped"

    @server.tool(structured_output=False)
    def die() -> str:
        """Die in the middle of a call."""
        note_execution("die", "")
        os._exit(3)

    @server.tool(structured_output=False)
    def complain() -> str:
        """Fail."""
        note_execution("complain", "")
        raise ValueError("nothing works today")

    @server.tool(structured_output=False)
    async def grow(ctx: Context) -> str:
        """Have one tool more from now on."""
        server.add_tool(look, name="look_again", structured_output=False)
        await ctx.notify_tools_changed()
        return "grown"

    return server


def guarded(app: Any, token: str) -> Any:
    async def guard(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers") or ())
        wanted = f"Bearer {token}".encode()
        if scope["type"] == "http" and token and headers.get(b"authorization") != wanted:
            await Response(status_code=401)(scope, receive, send)
            return
        await app(scope, receive, send)

    return guard


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count_file", type=Path)
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--http", type=int)
    parser.add_argument("--token", default="")
    asked = parser.parse_args()
    server = build(asked.count_file, asked.slow)
    if asked.http is None:
        server.run("stdio")
        return
    app = guarded(server.streamable_http_app(), asked.token)
    uvicorn.run(app, host="127.0.0.1", port=asked.http, log_level="error")


if __name__ == "__main__":
    main()
