"""What is remembered, as the tools, the loops and the operator use it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from koboshi.domain.ids import TurnId
from koboshi.domain.memory import (
    EditedFile,
    MemoryEntry,
    MemoryId,
    MemoryOutcome,
    MemoryView,
    MemoryWish,
    ScopeId,
    Shelf,
    ShownToTurn,
)
from koboshi.domain.turn import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Painting:
    """The files of a memory in one revision. Their contents are known before they are written."""

    scope_id: ScopeId
    folder: str
    revision: int
    files: tuple[tuple[Shelf, str], ...]


class FileFate(StrEnum):
    """What is to be done with a file that was found."""

    CURRENT = "current"  # it is the picture of the newest revision
    REWRITE = "rewrite"  # it is stale, or was read: it is written anew
    KEEP = "keep"  # it is a hand edit that cannot be taken over; it stays as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Something that was said."""

    text: str
    at_ms: int
    turn: str
    is_persons: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStory:
    """An entry with whose it is and how it came."""

    memory: MemoryEntry
    view: MemoryView


class Memories(Protocol):
    async def look(self, claim: Claim) -> ShownToTurn:
        """What a claimed turn was shown, and what there is to show."""
        ...

    async def show(self, claim: Claim, text: str, view: MemoryView | None) -> str:
        """Fix what the turn is shown. What was fixed before stays; returns what holds."""
        ...

    async def revision_shown(self, turn_id: TurnId) -> tuple[ScopeId, int] | None:
        """Which memory a turn was shown, and its revision; None if none was."""
        ...

    async def wish(self, claim: Claim, wish: MemoryWish, by: str) -> MemoryOutcome:
        """Change the memory of the turn's chat. With the same key, it is done once. Raises
        Fenced."""
        ...

    async def order(self, scope_id: ScopeId, wish: MemoryWish, by: str) -> MemoryOutcome:
        """The same, of the operator."""
        ...

    async def views(self, limit: int) -> tuple[MemoryView, ...]: ...

    async def view(self, scope_id: ScopeId) -> MemoryView | None: ...

    async def story(self, memory_id: MemoryId) -> MemoryStory | None: ...

    async def behind(self, limit: int, after: int | None = None) -> tuple[MemoryView, ...]:
        """Memories whose files are not written in their newest form in this home: of those that
        changed last, or the first ones behind an id of all."""
        ...

    async def paint(self, scope_id: ScopeId, shelves: tuple[Shelf, ...]) -> Painting:
        """The files that are to be written; their contents are stored as known."""
        ...

    async def painted(self, painting: Painting) -> None:
        """They are there."""
        ...

    async def read_back(self, scope_id: ScopeId, file: EditedFile) -> FileFate:
        """Judge a file that was found, and take a hand edit over."""
        ...

    async def recall(self, claim: Claim, text: str, limit: int) -> tuple[Recalled, ...]:
        """The newest messages and answers with all of these words, of this person or group."""
        ...

    async def forget(self, before_ms: int, limit: int) -> int:
        """Forget what turns were shown that closed before. Returns of how many."""
        ...
