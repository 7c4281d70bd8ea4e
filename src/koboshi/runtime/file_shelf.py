"""Files of this home in the store, and those of other homes here: a file that is owed to a person,
or that a person sent along, may be needed by any gateway of the database."""

import os
from dataclasses import dataclass
from pathlib import Path

import structlog
from anyio import to_thread

from koboshi.ports.files import KeptFiles

log = structlog.get_logger()

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredShelf:
    home: Path
    files: KeptFiles

    async def keep(self, path: str, place: Path | None = None) -> None:
        content = await to_thread.run_sync((place or self.home / path).read_bytes)
        await self.files.put(path, content)

    async def bring(self, path: str) -> None:
        place = self.home / path
        if await to_thread.run_sync(os.path.lexists, place):
            return
        content = await self.files.get(path)
        if content is not None:
            await to_thread.run_sync(_write, place, content)
            log.info("file_brought", path=path, bytes=len(content))


def _write(place: Path, content: bytes) -> None:
    """Whole or not at all. It needs no power cut in mind: the store has it."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, _NEW, 0o600), "wb") as file:
        file.write(content)
    part.rename(place)
