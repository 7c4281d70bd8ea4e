"""Backups of a database that is not in the home: its operator makes them."""

from koboshi.ports.backups import BackupStanding, BackupState

WORDS = "the store is PostgreSQL: back it up with its own tools"


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
