"""Whether the library is there that MCP servers are reached with. It is an extra."""

from collections.abc import Sequence
from importlib.util import find_spec

from koboshi.domain.errors import ToolUnusable


def require_library(servers: Sequence[str]) -> None:
    """Raises ToolUnusable, with the remedy, if there are servers and no library to reach them."""
    if servers and find_spec("mcp") is None:
        raise ToolUnusable(
            f"the mcp servers of the configuration ({', '.join(servers)}) need a library that is "
            'not installed: run `pip install "koboshi[mcp]"`, or set enabled = false'
        )
