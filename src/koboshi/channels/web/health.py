"""What the health endpoints ask."""

from typing import Protocol


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
