"""The file tools on folders of their own."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from koboshi.boundary.enclosure import ON_HOST, Enclosure, Exceptions
from koboshi.domain.ids import CallId, ChannelName, Epoch, Generation, SessionId, TurnId, WorkerId
from koboshi.domain.route import Route
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.domain.turn import Claim
from koboshi.ports.tool import Tool, ToolContext, ToolFailed
from koboshi.tools.files.tools import file_tools

CONTEXT = ToolContext(
    claim=Claim(
        turn_id=TurnId(7),
        session_id=SessionId(1),
        generation=Generation(1),
        epoch=Epoch(1),
        worker_id=WorkerId(1),
    ),
    call_id=CallId("5.0"),
    route=Route(channel=ChannelName("web:main"), chat="ann"),
)


class Files:
    """The file tools on a working folder and a home of their own, on the host or inside a
    boundary."""

    def __init__(
        self,
        root: Path,
        boundary: Boundary = Boundary.NONE,
        *,
        readable: str = "",
        hidden: str = "",
    ) -> None:
        self.root = root
        self.workdir = root / "work"
        self.home = root / "home"
        for folder in (self.workdir, self.home):
            folder.mkdir()
        (self.home / "koboshi.db").write_bytes(b"rows")
        (self.home / "web-token").write_text("secret\n")
        self.enclosure = ON_HOST
        if boundary is not Boundary.NONE:
            self.enclosure = Enclosure(
                sandbox=Sandbox.WORKSPACE,
                boundary=boundary,
                workdirs=(str(self.workdir),),
                kept=str(self.home / "inside"),
                hidden=(str(self.home), *((hidden,) if hidden else ())),
                exceptions=Exceptions(readable=(readable,) if readable else ()),
            )
        found = file_tools(workdir=self.workdir, home=self.home, enclosure=self.enclosure)
        self.tools: dict[str, Tool] = {tool.spec.name: tool for tool in found}

    async def run(self, tool: str, **arguments: object) -> dict[str, Any]:
        answer = await self.tools[tool].run(json.dumps(arguments), CONTEXT)
        assert answer.text.startswith('{"status":"')
        return dict(json.loads(answer.text))

    async def failure(self, tool: str, **arguments: object) -> str:
        with pytest.raises(ToolFailed) as failed:
            await self.tools[tool].run(json.dumps(arguments), CONTEXT)
        return str(failed.value)

    def left(self) -> list[str]:
        return sorted(os.listdir(self.workdir))
