"""Backups of the store: made while it is in use, and counted only when proven whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class BackupState(StrEnum):
    COPYING = "copying"
    CHECKING = "checking"
    MADE = "made"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupStanding:
    """How far the newest backup of this boot is."""

    state: BackupState
    file: str = ""
    pages_done: int = 0
    pages: int = 0
    bytes: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows each table has in it; the copy was counted, not the original."""
    removed: tuple[str, ...] = ()
    """Older backups that were removed because enough newer ones are kept."""
    trouble: str = ""
    """Why it failed; a failed backup leaves nothing behind."""


class Backups(Protocol):
    def begin(self, to: str, keep: int) -> bool:
        """Begin a backup, into the file `to` or, if that is empty, into the home, where at most
        `keep` are kept (0: all). False if one is being made already."""
        ...

    def standing(self) -> BackupStanding | None:
        """How far the last begun backup is; None if none was begun."""
        ...

    def newest_ms(self) -> int | None:
        """When the newest backup in the home was made; None if there is none."""
        ...
