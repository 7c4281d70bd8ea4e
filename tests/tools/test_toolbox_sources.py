"""The toolbox with tools that come and go."""

from dataclasses import replace

import pytest

from koboshi.ports.tool import Tool, ToolFailed
from koboshi.tools.ask import ASK
from koboshi.tools.mcp import McpServers, Program, ServerLimits, ServerSpec
from koboshi.tools.pause import PAUSE
from koboshi.tools.registry import Toolbox


class Source:
    def __init__(self, *tools: Tool) -> None:
        self.now = tools
        self.has_settled = False

    def tools(self) -> tuple[Tool, ...]:
        return self.now

    def find(self, name: str) -> Tool | None:
        return next((tool for tool in self.now if tool.spec.name == name), None)

    async def reach(self, name: str) -> Tool | None:
        return self.find(name)

    async def settle(self) -> None:
        self.has_settled = True


OTHER = replace(PAUSE, name="other")


async def test_tools_of_a_source_are_there_when_it_has_them() -> None:
    source = Source()
    box = Toolbox([ASK], [source])
    before = (box.names, box.find("other"), await box.reach("other"))
    source.now = (OTHER,)

    assert before == (("ask",), None, None)
    assert box.names == ("ask", "other")
    assert box.find("other") is OTHER
    assert await box.reach("other") is OTHER


async def test_a_fixed_tool_keeps_its_name_whatever_a_source_has() -> None:
    box = Toolbox([PAUSE], [Source(replace(PAUSE, description="mine")), Source(OTHER)])

    assert box.names == ("pause", "other")
    assert box.find("pause") is PAUSE
    assert await box.reach("pause") is PAUSE
    assert box.specs()[0].description == PAUSE.description


def test_a_name_that_no_provider_takes_is_not_told() -> None:
    assert Toolbox([], [Source(replace(PAUSE, name="No Such Name"))]).names == ()


async def test_the_toolbox_settles_its_sources() -> None:
    source = Source()

    await Toolbox([], [source]).settle()

    assert source.has_settled


async def test_a_tool_of_a_server_that_has_not_come_is_found_and_out_of_reach() -> None:
    """It must be judged as dangerous, not as unknown: it may be there when the call is run."""
    pytest.importorskip("mcp")
    spec = ServerSpec(name="files", endpoint=Program(command="x", workdir="/"), timeout_seconds=1)
    servers = McpServers([spec], ServerLimits(reach_s=0.01), taken=["ask"])
    box = Toolbox([ASK], [servers])

    assert box.names == ("ask",)
    assert box.find("files_read") is not None
    assert box.find("tracker_read") is None
    with pytest.raises(ToolFailed, match="it was not started: the server files is not connected"):
        await box.reach("files_read")
