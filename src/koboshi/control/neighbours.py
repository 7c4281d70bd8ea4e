"""How the neighbours are that a gateway can serve without: the model, and the servers of tools.

What is kept here is for people who look. It decides nothing and begins anew with each boot.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from koboshi.domain.durations import duration
from koboshi.domain.phrases import excerpt
from koboshi.ports.clock import Clock

WORDS_MAX = 300


Neighbour: TypeAlias = tuple[str, bool, str]
"""Its name, whether it is well, and how it is in words."""
ToolLine: TypeAlias = tuple[str, str, str]
"""The name of a tool, where it comes from, and what it does."""


@dataclass(slots=True, kw_only=True)
class ModelStanding:
    """The outcome of the newest request to the model."""

    outcome: str = ""
    """ok, busy, refused, overfull or ended; empty before the first."""
    reason: str = ""
    at_s: float = 0.0

    def note(self, clock: Clock, outcome: str, reason: str = "") -> None:
        self.outcome, self.reason, self.at_s = outcome, reason, clock.monotonic()

    def told(self, clock: Clock) -> Neighbour:
        if not self.outcome:
            return ("model", True, "not asked since the start")
        ago = f"{duration(round(clock.monotonic() - self.at_s) * 1000)} ago"
        if self.outcome in ("ok", "overfull"):
            return ("model", True, f"answered {ago}")
        why = f": {excerpt(self.reason, WORDS_MAX)}" if self.reason else ""
        return ("model", False, f"{self.outcome} {ago}{why}")


@dataclass(slots=True, kw_only=True)
class Neighbours:
    clock: Clock
    model: ModelStanding = field(default_factory=ModelStanding)
    servers: Callable[[], Mapping[str, str | None]] = dict
    """The MCP servers by name, and why one is not connected."""
    chain: Callable[[], tuple[Neighbour, ...]] = tuple
    """The models, where there are several."""
    tools: Callable[[], tuple[ToolLine, ...]] = tuple
    """What the agent can use now."""
    boundary: tuple[bool, str] | None = None
    """Whether anything stands around the agent's programs, and what; None: it was not looked."""

    def told(self) -> tuple[Neighbour, ...]:
        """Each of them, as it is now."""
        servers = (
            (f"mcp:{name}", why is None, why or "connected") for name, why in self.servers().items()
        )
        around = [] if self.boundary is None else [("boundary", *self.boundary)]
        return (self.model.told(self.clock), *self.chain(), *around, *servers)
