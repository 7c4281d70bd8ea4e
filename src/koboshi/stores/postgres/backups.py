"""Where no backups are made. A gateway has others (`stores/moving/backups.py`)."""

from typing import Protocol

from koboshi.ports.backups import Backups, BackupStanding, BackupState

WORDS = "backups are not made here"


class StoreBackups(Backups, Protocol):
    def stop(self) -> None:
        """End the one that is being made, if there is one; it leaves nothing behind."""
        ...


class NoBackups:
    def __init__(self) -> None:
        self._standing: BackupStanding | None = None

    def begin(self, to: str, keep: int) -> bool:  # noqa: ARG002  (there is nothing to begin)
        self._standing = BackupStanding(state=BackupState.FAILED, trouble=WORDS)
        return True

    def standing(self) -> BackupStanding | None:
        return self._standing

    def newest_ms(self) -> int | None:
        return None

    def stop(self) -> None:
        """Nothing is ever under way."""
