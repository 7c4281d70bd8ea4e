"""The reference MCP server that others publish on npm, as a process that a test kills."""

import json
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.harness.polling import LOOK_EVERY_S
from tests.harness.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".npm-neighbours"
PROGRAM = FOLDER / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"


def installed() -> Path:
    """The server's program. The test is skipped where npm or its registry is not at hand."""
    made = subprocess.run(
        [ROOT / "scripts/npm_environment.sh"], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"server-everything is not at hand: {made.stderr.strip()[:200]}")
    return PROGRAM


class Everything:
    """The server over streamable HTTP, always at the same address."""

    def __init__(self, log: Path) -> None:
        self.port = free_port()
        self._log = log
        self._command: Sequence[str] = ("node", str(installed()), "streamableHttp")
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env={"PATH": os.environ["PATH"], "PORT": str(self.port)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        for _ in range(round(60 / LOOK_EVERY_S)):
            with socket.socket() as client:
                client.settimeout(LOOK_EVERY_S)
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            try:
                self._process.wait(LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                continue
            break
        raise AssertionError(f"the server did not come up: {self._log.read_text()[-500:]}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def sessions(self) -> int:
        """How many sessions it has begun, over all its lives."""
        return self._log.read_text().count("Session initialized")


def sections(**servers: Mapping[str, object]) -> str:
    """The configuration of these servers."""
    lines: list[str] = []
    for name, keys in servers.items():
        lines.append(f"[mcp.{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join([*lines, ""])
