"""The lines of a file, each of bounded length, from no more than a bounded part of it. Standard
library only."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

SAMPLE_BYTES = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLine:
    number: int
    content: bytes
    """Without its end."""
    left_out: int
    """How many bytes of it are missing."""
    has_return: bool
    """It ended with a carriage return, as on Windows."""


def is_binary(file: BinaryIO) -> bool:
    """Whether its beginning is no text. The position stays at the beginning."""
    sample = file.read(SAMPLE_BYTES)
    file.seek(0)
    return b"\0" in sample


class Lines:
    """The lines of a file that was opened at its beginning, up to `bytes_max` bytes of it."""

    def __init__(self, file: BinaryIO, *, line_bytes_max: int, bytes_max: int) -> None:
        self._file = file
        self._line_bytes_max = line_bytes_max
        self.bytes_left = bytes_max

    def __iter__(self) -> Iterator[FileLine]:
        number = 0
        while piece := self._read():
            number += 1
            last, skipped = piece, 0
            while not last.endswith(b"\n") and (last := self._read()):
                skipped += len(last)
            content = piece.removesuffix(b"\n")
            yield FileLine(
                number=number,
                content=content.removesuffix(b"\r"),
                left_out=skipped - (skipped > 0 and last.endswith(b"\n")),
                has_return=content.endswith(b"\r"),
            )

    def _read(self) -> bytes:
        piece = self._file.readline(min(self._line_bytes_max, self.bytes_left))
        self.bytes_left -= len(piece)
        return piece
