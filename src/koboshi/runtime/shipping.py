"""An answer on its way: its parts, and the file that holds the whole of a long one.

The file is durable before the transaction that owes it, under a name unique to its turn. A kill in
between leaves a file that no delivery owes: the next try writes it again, and `Parcels` removes
leftovers.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog
from anyio import to_thread

from koboshi.domain.files import SENT, OutFile
from koboshi.domain.ids import ChannelName, TurnId
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.shipment import shipment_of
from koboshi.domain.splitting import split_text
from koboshi.ports.channel import Channel
from koboshi.ports.files import NO_SHELF, FileShelf

log = structlog.get_logger()

FILE_NAME = "answer.md"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
TEXT_MAX = 4_000
"""What every platform takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipping:
    channels: Mapping[ChannelName, Channel]
    home: Path
    shelf: FileShelf = NO_SHELF

    def takes_files(self, name: ChannelName) -> bool:
        """Whether people can be sent files there."""
        channel = self.channels.get(name)
        return channel is not None and channel.abilities.takes_files

    async def ship(
        self, name: ChannelName, turn_id: TurnId, text: str
    ) -> tuple[tuple[str, ...], OutFile | None]:
        """The parts of an answer, and the file that goes with the last one. Raises OSError while a
        missing resource keeps the file from being written."""
        channel = self.channels.get(name)
        if channel is None:
            return split_text(text, TEXT_MAX), None
        parts, abilities = channel.split(text), channel.abilities
        parts_max = abilities.parts_max
        shipment = shipment_of(parts, parts_max=parts_max, takes_files=abilities.takes_files)
        if not shipment.has_file:
            return shipment.parts, None
        try:
            file = await to_thread.run_sync(_keep, self.home, turn_id, text)
        except OSError as error:
            if shortage_in(error) is not None:
                raise
            log.warning("answer_not_kept", turn=turn_id, reason=error.strerror)
            return shipment_of(parts, parts_max=parts_max, takes_files=False).parts, None
        await self.shelf.keep(file.path)
        return shipment.parts, file


def _keep(home: Path, turn_id: TurnId, text: str) -> OutFile:
    folder = home / SENT
    folder.mkdir(mode=0o700, exist_ok=True)
    kept = folder / f"{turn_id}-{FILE_NAME}"
    part = kept.with_name(f"{kept.name}.part")
    content = text.encode()
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, _NEW, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.rename(kept)
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return OutFile(path=f"{SENT}/{kept.name}", name=FILE_NAME, size=len(content))
