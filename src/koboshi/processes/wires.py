"""The gateway's ends of an agent's wires: messages as files, and the spool of its output."""

import contextlib
import errno
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from koboshi.domain.ids import ProcessId
from koboshi.ports.wires import Fed

IN, OUT, BELL = "in", "out", "bell"
BEGUN = ".begun"


def make_wires(folder: Path) -> None:
    """Make the folders of an agent, before its runner begins."""
    for name in (IN, OUT):
        (folder / name).mkdir(mode=0o700)


@dataclass(frozen=True, slots=True)
class LocalWires:
    """The wires of the agents of this machine, in the folders of their processes."""

    folder: Path

    def post(self, process_id: ProcessId, number: int, content: bytes) -> None:
        place = self._place(process_id) / IN
        names = (f"{number}", f"{number}{BEGUN}", f"{number}.fed")
        if not any((place / name).exists() for name in names):
            new = place / f"{number}.new"
            with new.open("wb") as file:
                os.chmod(file.fileno(), 0o600)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            new.replace(place / str(number))
            _sync(place)
        self.ring(process_id)

    def ring(self, process_id: ProcessId) -> None:
        # Without a reader it has ended; a bell that is full has been heard already.
        with contextlib.suppress(OSError):
            bell = os.open(self._place(process_id) / BELL, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(bell, b"!")
            finally:
                os.close(bell)

    def fed(self, process_id: ProcessId, number: int) -> Fed | None:
        place = self._place(process_id) / IN
        mark = place / f"{number}{BEGUN}"
        try:
            size, at_ms = int(mark.read_bytes() or b"0"), mark.stat().st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return None
        return Fed(spool_size=size, is_whole=(place / f"{number}.fed").exists(), at_ms=at_ms)

    def begun(self, process_id: ProcessId) -> int:
        try:
            names = os.listdir(self._place(process_id) / IN)
        except FileNotFoundError:
            return 0
        marks = (name.removesuffix(BEGUN) for name in names if name.endswith(BEGUN))
        return max((int(number) for number in marks if number.isdecimal()), default=0)

    def size(self, process_id: ProcessId) -> int:
        segments = self._segments(process_id)
        if not segments:
            return 0
        start, path = segments[-1]
        return start + path.stat().st_size

    def read(self, process_id: ProcessId, offset: int, limit: int) -> bytes:
        found = bytearray()
        for start, path in self._segments(process_id):
            at = offset + len(found)
            if len(found) >= limit:
                break
            if start > at:
                raise OSError(errno.ENODATA, "a part of the agent's output is gone")
            with path.open("rb") as file:
                file.seek(at - start)
                found += file.read(limit - len(found))
        return bytes(found)

    def forget(self, process_id: ProcessId, below: int) -> None:
        segments = self._segments(process_id)
        gone = False
        for (_, path), (end, _) in pairwise(segments):
            if end <= below:
                path.unlink(missing_ok=True)
                gone = True
        if gone:
            self.ring(process_id)

    def _place(self, process_id: ProcessId) -> Path:
        return self.folder.absolute() / str(process_id)

    def _segments(self, process_id: ProcessId) -> list[tuple[int, Path]]:
        place = self._place(process_id) / OUT
        try:
            names = [name for name in os.listdir(place) if name.isdecimal()]
        except FileNotFoundError:
            return []
        return sorted((int(name), place / name) for name in names)


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
