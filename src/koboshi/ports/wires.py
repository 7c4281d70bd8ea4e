"""The input and the output of agents under their runners (`runner/wires.py`)."""

from dataclasses import dataclass
from typing import Protocol

from koboshi.domain.ids import ProcessId


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """How far a message came. One without it was not begun: no byte of it reached the agent."""

    spool_size: int
    """How much the agent had written when the first byte was about to be fed."""
    is_whole: bool
    at_ms: int = 0
    """When that was, by the clock of then."""


class Wires(Protocol):
    def post(self, process_id: ProcessId, number: int, content: bytes) -> None:
        """Leave a message for the agent, durably. A number that was left before is not left again.
        Rings the bell in any case. Raises OSError."""
        ...

    def ring(self, process_id: ProcessId) -> None:
        """Have the runner look for messages and for room."""
        ...

    def fed(self, process_id: ProcessId, number: int) -> Fed | None: ...

    def begun(self, process_id: ProcessId) -> int:
        """The newest message of which a byte may have reached the agent; 0 if there is none. They
        are fed in order, so all before it were fed."""
        ...

    def size(self, process_id: ProcessId) -> int:
        """How much the agent has written so far."""
        ...

    def read(self, process_id: ProcessId, offset: int, limit: int) -> bytes:
        """What it wrote from there on. Raises OSError, also if that is gone."""
        ...

    def forget(self, process_id: ProcessId, below: int) -> None:
        """Delete what is stored elsewhere by now, as far as whole segments allow."""
        ...
