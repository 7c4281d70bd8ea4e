"""The tools of one gateway, by name."""

import re
from collections.abc import Callable, Iterator, Sequence

from koboshi.domain.role import RoleStanding
from koboshi.ports.model import ToolSpec
from koboshi.ports.tool import Tool, ToolSource

# What every provider accepts as the name of a tool.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def is_name(name: str) -> bool:
    """Whether a tool can be called that."""
    return _NAME.fullmatch(name) is not None


class Toolbox:
    """Tools in the order given, then those that the sources have at the moment.

    Where names meet, the first one given has it. Raises ValueError for a fixed tool with a bad
    name, or one that is taken twice.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        sources: Sequence[ToolSource] = (),
        make: Callable[[RoleStanding], Sequence[Tool]] | None = None,
    ) -> None:
        self._sources = tuple(sources)
        self._make = make
        self._fixed: dict[str, Tool] = {}
        for tool in tools:
            name = tool.spec.name
            if not is_name(name):
                raise ValueError(f'"{name}" cannot be the name of a tool; use a-z, 0-9 and _')
            if name in self._fixed:
                raise ValueError(f'there are two tools with the name "{name}"')
            self._fixed[name] = tool

    def within(self, standing: RoleStanding) -> "Toolbox":
        """The tools that a turn has by its role, in the folder of its chat."""
        if self._make is None:
            return self
        return Toolbox(self._make(standing), self._sources, self._make)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs())

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model is told of them."""
        told: dict[str, ToolSpec] = {}
        for tool in self._all():
            spec = tool.spec
            if is_name(spec.name):
                told.setdefault(spec.name, spec)
        return tuple(told.values())

    def find(self, name: str) -> Tool | None:
        """The tool of that name; None if there is none. It may be out of reach at the moment."""
        fixed = self._fixed.get(name)
        if fixed is not None:
            return fixed
        found = (source.find(name) for source in self._sources)
        return next((tool for tool in found if tool is not None), None)

    async def reach(self, name: str) -> Tool | None:
        """The tool of that name, ready to run; None if there is none. Raises ToolFailed if it is
        out of reach."""
        fixed = self._fixed.get(name)
        if fixed is not None:
            return fixed
        for source in self._sources:
            if source.find(name) is not None:
                return await source.reach(name)
        return None

    async def settle(self) -> None:
        """Wait, not for ever, for tools that are still on their way after the start."""
        for source in self._sources:
            await source.settle()

    def _all(self) -> Iterator[Tool]:
        yield from self._fixed.values()
        for source in self._sources:
            yield from source.tools()
