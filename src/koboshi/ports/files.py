"""Copies of files of a home that other gateways of the same database need."""

from pathlib import Path
from typing import Protocol


class KeptFiles(Protocol):
    """The copies in the store."""

    async def put(self, path: str, content: bytes) -> None:
        """Keep a copy, whole or not at all. One that is there stays as it is."""
        ...

    async def get(self, path: str) -> bytes | None:
        """The copy; None if there is none."""
        ...

    async def forget(self, path: str) -> None: ...

    async def sweep(self, before_ms: int, kept: frozenset[str]) -> int:
        """Delete copies from before that moment, but for these. Returns how many."""
        ...


class FileShelf(Protocol):
    """Puts files of this home where others find them, and brings theirs."""

    async def keep(self, path: str, place: Path | None = None) -> None:
        """Have a file of this home kept for others, before it is told of. It may lie elsewhere than
        at its `path` below the home."""
        ...

    async def bring(self, path: str) -> None:
        """Have a file here, if it is kept. Nothing happens if it is here, or nowhere."""
        ...


class NoShelf:
    """No other gateway is there."""

    async def keep(self, path: str, place: Path | None = None) -> None:
        """The home is enough."""

    async def bring(self, path: str) -> None:
        """Every file is in the home."""


NO_SHELF = NoShelf()
