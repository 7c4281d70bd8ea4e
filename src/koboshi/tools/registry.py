"""The tools of one gateway, by name."""

import re
from collections.abc import Sequence

from koboshi.ports.model import ToolSpec
from koboshi.ports.tool import Tool

# What every provider accepts as the name of a tool.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Toolbox:
    """Tools in the order given. Raises ValueError for a bad name, or one that is taken twice."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            name = tool.spec.name
            if not _NAME.fullmatch(name):
                raise ValueError(f'"{name}" can not be the name of a tool; use a-z, 0-9 and _')
            if name in self._tools:
                raise ValueError(f'there are two tools with the name "{name}"')
            self._tools[name] = tool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model is told of them."""
        return tuple(tool.spec for tool in self._tools.values())

    def find(self, name: str) -> Tool | None:
        """The tool of that name; None if there is none."""
        return self._tools.get(name)
