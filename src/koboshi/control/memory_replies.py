"""What is answered about memories."""

import msgspec

from koboshi.control.replies import Done, Explained


class MemoryRow(msgspec.Struct, frozen=True, kw_only=True):
    memory: str
    shelf: str
    text: str
    turn: str | None
    """Where it was noted; null: by hand, or by an operator."""


class MemoryScopeRow(msgspec.Struct, frozen=True, kw_only=True):
    channel: str
    kind: str
    """person or chat."""
    name: str
    """The id on the platform; empty: the one owner of the channel."""
    revision: int
    changed_ms: int
    folder: str
    """Of its files, below `memory` in the home."""
    memories: tuple[MemoryRow, ...]
    troubles: tuple[str, ...]
    """Files that were edited by hand and are not taken over."""


class MemoryList(Done, frozen=True, kw_only=True):
    scopes: tuple[MemoryScopeRow, ...]


class MemoryDone(Done, frozen=True, kw_only=True):
    words: str


class MemoryExplained(Explained, frozen=True, kw_only=True):
    memory: MemoryRow
    scope: MemoryScopeRow
    since: int
    """Since which revision it is there."""
