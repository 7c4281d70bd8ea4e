"""What the health endpoints ask, and what they answer."""

from typing import Protocol

import msgspec
from msgspec import UNSET, UnsetType


class Check(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    ok: bool
    reason: str


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """A client without the token is told whether, and not why."""

    ok: bool
    checks: tuple[Check, ...] | UnsetType = UNSET
    neighbours: tuple[Check, ...] | UnsetType = UNSET


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """`neighbours` are whom the gateway asks for help: `ok` does not depend on them."""

    ok: bool
    checks: tuple[Check, ...]
    neighbours: tuple[Check, ...]


class Health(Protocol):
    def is_alive(self) -> bool:
        """Whether this process makes progress; one that does not wants to be restarted."""
        ...

    def readiness(self) -> tuple[tuple[str, bool, str], ...]:
        """Each check by name, whether it holds, and the reason; ready is when all of them hold."""
        ...

    def neighbours(self) -> tuple[tuple[str, bool, str], ...]:
        """The same for whom the gateway asks for help. Being ready does not depend on them."""
        ...
