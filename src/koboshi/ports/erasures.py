"""Erasing what a person said, in steps that a crash cannot leave half done."""

from typing import Protocol

from koboshi.domain.erasure import Erasure
from koboshi.domain.ids import ChannelName


class Erasures(Protocol):
    async def erase(self, channel: ChannelName, person: str, by: str) -> int:
        """Empty every row with words of the person, and store what else has to go. Their open turns
        end. Returns how many messages were erased."""
        ...

    async def unfinished(self) -> tuple[Erasure, ...]:
        """Erasures whose files or whose traces in the log may still be there."""
        ...

    async def files_gone(self, erasure_id: int) -> None:
        """The files are deleted. Their names go from the row."""
        ...

    async def forget_log(self) -> bool:
        """Move the log into the database and truncate it: it holds what rows said before. False if
        a reader was in the way; try again."""
        ...

    async def finished(self, erasure_id: int) -> None:
        """Nothing is left to do."""
        ...
