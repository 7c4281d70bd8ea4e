"""Backups and their restore, for a home in which no gateway runs, and for files anywhere."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from anyio import sleep

from koboshi.app.owned import owned_store
from koboshi.app.stores import MISSING, is_in_home
from koboshi.clock import SystemClock
from koboshi.config import Config, prepare_home
from koboshi.domain.errors import StoreRefused
from koboshi.ports.backups import BackupStanding, BackupState
from koboshi.stores import faults
from koboshi.stores.sqlite.backup_check import prove
from koboshi.stores.sqlite.migrate import BACKUPS_NAME
from koboshi.stores.sqlite.restoring import Restored, restore_backup

LOOK_SECONDS = 0.05

__all__ = ["ListedBackup", "Restored", "backup_from_home", "backups_in", "proven", "restored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBackup:
    file: str
    bytes: int
    made_ms: int


async def backup_from_home(
    config: Config, to: str, keep: int, tell: Callable[[BackupStanding], None]
) -> BackupStanding:
    """Make a backup with this process as the owner of the home. Raises HomeHeld if it is not."""
    async with owned_store(config, who="koboshi backup") as store:
        store.backups.begin(to, keep)
        while True:
            standing = store.backups.standing()
            if standing is not None:
                tell(standing)
                if standing.state in (BackupState.MADE, BackupState.FAILED):
                    return standing
            await sleep(LOOK_SECONDS)


def backups_in(home: Path) -> tuple[ListedBackup, ...]:
    """The files in the folder for backups, newest first. Nothing is read of them."""
    found = [
        ListedBackup(
            file=str(path),
            bytes=path.stat().st_size,
            made_ms=path.stat().st_mtime_ns // 1_000_000,
        )
        for path in (home / BACKUPS_NAME).glob("*.db")
    ]
    return tuple(sorted(found, key=lambda each: each.made_ms, reverse=True))


def proven(file: Path, tick: Callable[[], None]) -> tuple[int, int, Mapping[str, int]]:
    """The schema version, size and rows of a whole backup. Raises StoreRefused."""

    def go_on() -> bool:
        tick()
        return True

    found = prove(file, go_on)
    return found.version, found.bytes, found.rows


async def restored(
    config: Config, file: Path, *, accepts_loss: bool, tick: Callable[[], None]
) -> Restored:
    """Put the backup into the store, and make its home once the file has proved whole. Raises
    ConfigError, HomeHeld, StoreRefused or StoreFailed; then nothing was changed."""

    def go_on() -> bool:
        tick()
        return True

    def prepare() -> None:
        prepare_home(config.home)

    if not is_in_home(config):
        try:
            from koboshi.stores.moving.restoring import restore_to_server
        except ImportError as error:
            raise StoreRefused(MISSING) from error
        return restore_to_server(
            config.home,
            file,
            config.store.url,
            clock=SystemClock(),
            accepts_loss=accepts_loss,
            go_on=go_on,
            prepare=prepare,
        )
    crash_at = os.environ.get(faults.VARIABLE, "")
    return await restore_backup(
        config.home,
        file,
        clock=SystemClock(),
        crash_at=crash_at,
        go_on=go_on,
        prepare=prepare,
    )
