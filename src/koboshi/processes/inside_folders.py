"""The folders in the home that programs inside a boundary call `/tmp`: removed when their chats
have not used them for long. The homes of programs stay: caches are in them.

A folder moves out of reach before anything in it is deleted, so a command that begins meanwhile
has a new one, and nothing of a program can change what is being deleted.
"""

import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog
from anyio import sleep, to_thread

from koboshi.boundary.control_groups import ControlGroups
from koboshi.domain.ids import shown
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store

log = structlog.get_logger()

REMOVED = ".removed"
LOOKED_AT_MAX = 100_000
"""Of one folder. What is older than all these is taken for old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InsideFolders:
    store: Store
    clock: Clock
    folder: Path
    """Holds one folder for each session, and for each MCP server."""
    servers: frozenset[str]
    """Folders of servers that may run."""
    groups: ControlGroups
    keep_ms: int
    sweep_seconds: float

    async def keep_sweeping(self) -> None:
        """Now and again and again, until cancelled. A failed cleanup never ends the gateway."""
        while True:
            try:
                await self.sweep()
            except (OSError, RuntimeError) as error:
                if isinstance(error, RuntimeError) and shortage_in(error) is None:
                    raise
                log.warning("sweep_failed", folder=str(self.folder), error=str(error))
            await sleep(self.sweep_seconds)

    async def sweep(self) -> None:
        await to_thread.run_sync(self.groups.sweep)
        alive = await self.store.processes.alive()
        used = {shown("session", process.session_id) for process in alive} | self.servers
        before_ms = self.clock.now_ms() - self.keep_ms
        count = await to_thread.run_sync(remove_unused, self.folder, used, before_ms)
        if count:
            log.info("temporary_folders_removed", count=count)


def remove_unused(folder: Path, used: Collection[str], before_ms: int) -> int:
    """Remove the folders in which nothing is newer than that moment. Returns how many."""
    removed = folder / REMOVED
    count = 0
    with suppress(FileNotFoundError):
        for each in sorted(folder.iterdir()):
            if each.name == REMOVED or each.name in used or _newest_ms(each) >= before_ms:
                continue
            removed.mkdir(mode=0o700, exist_ok=True)
            each.rename(removed / secrets.token_hex(8))
            count += 1
    _remove(removed)
    return count


def _newest_ms(folder: Path) -> int:
    seen = zip(range(LOOKED_AT_MAX), _entries(folder), strict=False)
    times = [folder.lstat().st_mtime_ns, *(_time_of(path) for _, path in seen)]
    return max(times) // 1_000_000


def _entries(folder: Path) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield os.path.join(root, name)


def _time_of(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0  # gone meanwhile


def _remove(folder: Path) -> None:
    """Folders that their maker has closed to himself are opened first."""
    for root, folders, _ in os.walk(folder):
        for path in (os.path.join(root, name) for name in folders):
            if not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
