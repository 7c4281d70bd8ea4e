"""Children, as the tool and the operator use them."""

from dataclasses import dataclass
from typing import Protocol

from koboshi.domain.child import Child, ChildTask, Delegated
from koboshi.domain.ids import CallId, ChildId, SessionId, TurnId
from koboshi.domain.turn import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Relative:
    """A turn or a child in the tree of those that work for one turn."""

    depth: int
    """How deep it stands in the tree; the turn at its root has 0."""
    name: str
    """As people name it: t3 or a2."""
    turn_id: TurnId | None
    """The newest turn of a child; None if it has not begun."""
    words: str
    """What it is about, and where it stands."""


class Children(Protocol):
    async def delegate(self, claim: Claim, call_id: CallId, task: ChildTask) -> Delegated:
        """Make the child of a call, and begin it if it need not wait. A second time it changes
        nothing. Raises Fenced."""
        ...

    async def of_session(self, session_id: SessionId) -> tuple[Child, ...]:
        """Those of a session that work or wait, the oldest first."""
        ...

    async def child(self, child_id: ChildId) -> Child | None: ...
