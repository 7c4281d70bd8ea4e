"""The tools of MCP servers: what they are called here, what they may do, how they are reached.

Nothing here loads the `mcp` library before a server is connected to: it is an extra, and messages
have to be accepted first.
"""

from collections.abc import Collection, Sequence

import anyio

from koboshi.ports.tool import Tool
from koboshi.tools.mcp.endpoint import Address, Approval, Program, ServerLimits, ServerSpec
from koboshi.tools.mcp.library import require_library
from koboshi.tools.mcp.naming import owner_of
from koboshi.tools.mcp.server import McpServer
from koboshi.tools.mcp.tool import AbsentMcpTool

__all__ = [
    "Address",
    "Approval",
    "McpServer",
    "McpServers",
    "Program",
    "ServerLimits",
    "ServerSpec",
]


class McpServers:
    """All servers of the configuration, as one source of tools (`ports.tool.ToolSource`).

    `taken` are names that their tools cannot have. Raises ToolUnusable, with the remedy, if there
    are servers and the library is not installed.
    """

    def __init__(
        self,
        specs: Sequence[ServerSpec],
        limits: ServerLimits = ServerLimits(),  # noqa: B008  (frozen)
        *,
        taken: Collection[str] = (),
    ) -> None:
        names = [spec.name for spec in specs]
        require_library(names)
        self._servers = {
            spec.name: McpServer(spec, limits, servers=names, taken=taken) for spec in specs
        }

    async def keep_connected(self) -> None:
        """Keep all servers connected, each for itself. Ends only by being cancelled."""
        async with anyio.create_task_group() as tasks:
            for server in self._servers.values():
                tasks.start_soon(server.keep_connected)

    def tools(self) -> tuple[Tool, ...]:
        """The tools of every server that has been there since the start."""
        return tuple(tool for server in self._servers.values() for tool in server.tools)

    def find(self, name: str) -> Tool | None:
        """The tool of that name; one that stands for it if its server has not come yet; None if no
        server has it."""
        for server in self._servers.values():
            tool = server.find(name)
            if tool is not None:
                return tool
        owner = self._owner(name)
        if owner is None or owner.has_listed:
            return None
        return AbsentMcpTool(name=name, server=owner.name)

    async def reach(self, name: str) -> Tool | None:
        """The tool of that name, its server connected. Raises ToolFailed if that does not come."""
        having = (server for server in self._servers.values() if server.find(name) is not None)
        owner = next(having, None) or self._owner(name)
        return None if owner is None else await owner.reach(name)

    def standing(self) -> dict[str, str | None]:
        """Every server by its name, and why it is not connected; None if it is."""
        return {
            name: None if server.is_connected else server.reason
            for name, server in self._servers.items()
        }

    async def settle(self) -> None:
        """Wait, not for ever, until each server has come or has failed to once."""
        async with anyio.create_task_group() as tasks:
            for server in self._servers.values():
                tasks.start_soon(server.settle)

    def _owner(self, name: str) -> McpServer | None:
        owner = owner_of(name, self._servers)
        return None if owner is None else self._servers[owner]
