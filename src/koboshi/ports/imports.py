"""Moving in: what the store does with the home of another gateway."""

from typing import Protocol

from koboshi.domain.incoming import Incoming, MovedIn


class Imports(Protocol):
    async def commit(self, incoming: Incoming) -> MovedIn:
        """Store the people, the schedules (paused), what was remembered and the list of files, or
        nothing. The same once more changes nothing."""
        ...

    async def unfinished(self) -> tuple[Incoming, ...]:
        """Those whose files may not be in place; of each, the files alone."""
        ...

    async def finish(self, digest: str) -> None:
        """All its files are in place."""
        ...
