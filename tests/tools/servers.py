"""MCP servers for the tests: real programs, and how to talk to them."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from anyio import create_task_group, fail_after, sleep

from koboshi.ports.tool import Tool, ToolAnswer
from koboshi.tools.mcp import McpServers, Program, ServerLimits, ServerSpec
from koboshi.tools.mcp.endpoint import Endpoint
from tests.harness.ports import free_port
from tests.harness.tool_context import CONTEXT

FAKES = Path(__file__).resolve().parent.parent / "fakes"
ENVIRONMENT = {"PATH": os.environ["PATH"]}

# Long where only a failing test waits, short where every test does.
LIMITS = ServerLimits(
    connect_s=30, reach_s=30, settle_s=30, retry_s_min=0.05, retry_s_max=0.4, farewell_s=0.5
)


def counting(count_file: Path, *more: str) -> Program:
    return python(FAKES / "counting_mcp.py", str(count_file), *more)


def scripted(folder: Path, **script: Any) -> Program:
    path = folder / "script.json"
    path.write_text(json.dumps({"tools": [a_tool("act")]} | script), encoding="utf-8")
    return python(FAKES / "scripted_mcp.py", str(path))


def python(*args: object) -> Program:
    return Program(
        command=sys.executable,
        args=tuple(str(arg) for arg in args),
        environment=ENVIRONMENT,
        workdir="/",
    )


def a_tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": "Acts.", "inputSchema": {"type": "object"}} | fields


def spec(endpoint: Endpoint, name: str = "x", **fields: Any) -> ServerSpec:
    return ServerSpec(name=name, endpoint=endpoint, **({"timeout_seconds": 30} | fields))


@asynccontextmanager
async def running(*specs: ServerSpec, limits: ServerLimits = LIMITS) -> AsyncIterator[McpServers]:
    """The servers, kept connected until the block is left."""
    servers = McpServers(specs, limits)
    async with create_task_group() as tasks:
        tasks.start_soon(servers.keep_connected)
        yield servers
        tasks.cancel_scope.cancel()


async def reach(servers: McpServers, name: str) -> Tool:
    tool = await servers.reach(name)
    assert tool is not None, f"no tool {name}"
    return tool


async def call(servers: McpServers, name: str, **arguments: Any) -> ToolAnswer:
    tool = await reach(servers, name)
    return await tool.run(json.dumps(arguments), CONTEXT)


def told(answer: ToolAnswer) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(answer.text)
    return loaded


def executions(count_file: Path) -> list[str]:
    """The tools that were executed, in order."""
    lines = count_file.read_text(encoding="utf-8").splitlines() if count_file.exists() else []
    return [line.split()[0] for line in lines]


async def until(holds: Callable[[], bool], seconds: float = 30) -> None:
    with fail_after(seconds):
        while not holds():  # noqa: ASYNC110  (of other processes)
            await sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def children_of(parent: int) -> list[int]:
    stats = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # Gone since the list was made.
            stats.append(path.read_text(encoding="ascii", errors="replace"))
    pairs = [(stat.split()[0], stat.rpartition(")")[2].split()[1]) for stat in stats]
    return [int(pid) for pid, of in pairs if int(of) == parent]


def descendants_of(ancestor: int) -> list[int]:
    found: list[int] = []
    grown = [ancestor]
    while grown:
        grown = [child for pid in grown for child in children_of(pid)]
        found += grown
    return found


class HttpServer:
    """The counting server as a foreign process."""

    def __init__(self, count_file: Path, *more: str) -> None:
        self.port = free_port()
        self._command: Sequence[str] = (
            sys.executable, str(FAKES / "counting_mcp.py"), str(count_file),
            "--http", str(self.port), *more,
        )  # fmt: skip
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        for _ in range(600):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)  # noqa: TID251  (before anything runs)
        raise AssertionError("the server did not come up")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


FAMILY = """
trap '' TERM HUP
setsid sh -c 'sleep 600 & echo $! >> "$0"; exec sleep 600' "$1" &
(setsid sh -c 'trap "" TERM HUP INT; sleep 600 & echo $! >> "$0"; wait' "$1" &)
sleep 600 &
echo $! >> "$1"
shift
exec "$@"
"""
"""A server behind a shell, as `npx` starts it, beside children in sessions of their own and one
that has lost its parent."""


def family(tmp_path: Path) -> tuple[Program, Path]:
    pids, inner = tmp_path / "pids", counting(tmp_path / "count")
    args = (
        "-c",
        FAMILY,
        "sh",
        str(pids),
        "sh",
        "-c",
        '"$@"; exit',
        "sh",
        inner.command,
        *inner.args,
    )
    return Program(command="sh", args=args, environment=ENVIRONMENT, workdir="/"), pids
