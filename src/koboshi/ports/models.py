"""What is stored about the chain of models: which are benched, and which one a turn is on."""

from dataclasses import dataclass
from typing import Protocol

from koboshi.domain.chain import Bench, LinkFailure
from koboshi.domain.route import Route
from koboshi.domain.turn import Claim
from koboshi.domain.usage import UsageLine


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStanding:
    """What a choice rests on, at one moment."""

    benches: tuple[Bench, ...]
    """Those that count on this node; some may be over."""
    now_ms: int
    on: str | None = None
    """The model that the turn is on; None: it has left the first one never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatUsage:
    """What one person used of one model in one chat."""

    route: Route
    line: UsageLine


class Models(Protocol):
    async def standing(self, claim: Claim | None) -> ChainStanding:
        """What a choice for a turn rests on; without a claim, for what belongs to no turn."""
        ...

    async def benches(self) -> tuple[Bench, ...]:
        """All of them, of all nodes."""
        ...

    async def usage(self, since_ms: int) -> tuple[ChatUsage, ...]:
        """What all chats used since a moment."""
        ...

    async def bench(self, failure: LinkFailure) -> Bench:
        """The model failed: it is not asked for a while, longer each time."""
        ...

    async def lift(self, model: str) -> None:
        """The model answered: the next failure counts as the first."""
        ...

    async def put_on(self, claim: Claim, model: str, because: str) -> None:
        """The turn goes on with this model."""
        ...
